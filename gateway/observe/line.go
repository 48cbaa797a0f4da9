package observe

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// How much of what a client chose is written, in bytes.
const (
	maxMethod    = 32
	maxPath      = 2048
	maxOperation = 64
	maxUserAgent = 256
)

// appendLine appends a request's line. The query string is left out whole,
// because credentials travel in it; the key is shown by the beginning of its
// hash.
func (l *AccessLog) appendLine(b []byte, m *meter, o *observed) []byte {
	ex := o.ex
	b = append(b, `{"ts":"`...)
	b = l.clock.append(b, ex.Started)
	b = append(b, `","id":"`...)
	b = append(b, ex.ID[:]...)
	b = append(b, '"')
	b = append(b, m.field...)
	b = appendMember(b, `,"rev":`, ex.Revision)
	b = appendMember(b, `,"key":`, ex.KeyName)
	if ex.Grant != nil {
		b = appendMember(b, `,"policy":`, ex.Grant.Policy)
	}
	b = appendText(append(b, `,"method":`...), head(ex.Call.Method, maxMethod))
	b = appendText(append(b, `,"path":`...), head(ex.Call.Path, maxPath))
	if len(ex.Operations) > 0 {
		b = appendOperation(b, ex.Operations)
	}
	b = appendNumber(b, `,"status":`, int64(o.status))
	if ex.Rejection != nil {
		b = appendMember(b, `,"reason":`, ex.Rejection.Reason.String())
	}
	b = appendSizes(b, ex)
	b = appendNumber(b, `,"total_us":`, o.total.Microseconds())
	b = appendNumber(b, `,"gateway_us":`, o.own.Microseconds())
	b = appendUpstream(b, &ex.Upstream)
	if ex.Client.IsValid() {
		b = append(b, `,"ip":"`...)
		b = ex.Client.WithZone("").AppendTo(b) // a zone may hold anything
		b = append(b, '"')
	}
	if agent := ex.Call.Get(wire.NameUserAgent); len(agent) > 0 {
		b = appendText(append(b, `,"user_agent":`...), head(agent, maxUserAgent))
	}
	return append(b, "}\n"...)
}

// appendOperation appends what was asked of a GraphQL API: the first operation,
// and how many there were if that was not all.
func appendOperation(b []byte, all []*validate.Facts) []byte {
	first := all[0]
	b = appendMember(b, `,"operation":`, first.Name[:min(len(first.Name), maxOperation)])
	b = appendMember(b, `,"operation_type":`, first.Kind.String())
	if len(all) > 1 {
		b = appendNumber(b, `,"operations":`, int64(len(all)))
	}
	return b
}

// appendSizes appends the lengths of the bodies, as far as they are known.
func appendSizes(b []byte, ex *pipeline.Exchange) []byte {
	in := ex.Call.Length
	if ex.Call.Stream == nil {
		in = int64(len(ex.Call.Body))
	}
	if in >= 0 {
		b = appendNumber(b, `,"bytes_in":`, in)
	}
	a := ex.Answer
	out := int64(len(a.Body))
	switch {
	case a.NoBody:
		out = 0
	case a.Stream != nil:
		out = a.Length
	}
	if out >= 0 {
		b = appendNumber(b, `,"bytes_out":`, out)
	}
	return b
}

func appendUpstream(b []byte, u *pipeline.Upstream) []byte {
	if u.Address == "" {
		return b
	}
	b = appendNumber(b, `,"upstream_us":`, u.Duration.Microseconds())
	b = appendMember(b, `,"upstream":`, u.Address)
	if u.Status != 0 {
		b = appendNumber(b, `,"upstream_status":`, int64(u.Status))
	}
	if u.Retries > 0 {
		b = appendNumber(b, `,"retries":`, int64(u.Retries))
	}
	return b
}

// appendMember appends a member, unless its value is empty.
func appendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(append(b, name...), value)
}

func appendNumber(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

// head returns at most n bytes of text. It may end within a character, which is
// then written as one that could not be read.
func head(text []byte, n int) []byte { return text[:min(len(text), n)] }

// dateCache keeps the text of a day: the rest of a time is quickly computed.
type dateCache struct{ day atomic.Pointer[date] }

type date struct {
	number int64 // days since 1970
	text   string
}

// append appends t in UTC to the millisecond, as RFC 3339 has it.
func (c *dateCache) append(b []byte, t time.Time) []byte {
	const perDay = 86400
	seconds := t.Unix()
	number := seconds / perDay
	day := c.day.Load()
	if day == nil || day.number != number {
		day = &date{number: number, text: t.UTC().Format("2006-01-02T")}
		c.day.Store(day)
	}
	s := int(seconds % perDay)
	ms := t.Nanosecond() / 1e6
	b = append(b, day.text...)
	b = append(appendTwo(b, s/3600), ':')
	b = append(appendTwo(b, s/60%60), ':')
	b = append(appendTwo(b, s%60), '.')
	return append(appendTwo(b, ms/10), byte('0'+ms%10), 'Z')
}

// appendTwo appends a number below 100 in two digits.
func appendTwo(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }
