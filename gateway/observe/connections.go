package observe

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluicegate/sluice/gateway/live"
)

// The ends of GraphQL connections, and of their subscriptions, have lines of their own in
// the access log, with the member "event".

// ConnectionEnded writes the line of a GraphQL connection that has ended.
func (o *Observer) ConnectionEnded(m *live.Member) {
	l, end := o.access, m.Ending()
	if l == nil || isUsual(end.Code) && !l.samples() {
		return
	}
	b := appendEnd(make([]byte, 0, 512), "connection_end", m.Request, m)
	b = appendMember(b, `,"protocol":"`, m.Protocol())
	b = appendNumber(b, `,"code":`, int64(end.Code))
	b = appendMember(b, `,"close_reason":"`, end.Reason)
	if end.ByClient {
		b = append(b, `,"by":"client"`...)
	} else {
		b = append(b, `,"by":"gateway"`...)
	}
	in, out := m.Counted()
	b = appendNumber(b, `,"messages_in":`, int64(min(in, math.MaxInt64)))
	b = appendNumber(b, `,"messages_out":`, int64(min(out, math.MaxInt64)))
	b = appendNumber(b, `,"operations":`, int64(min(m.Started(), math.MaxInt64)))
	l.put(appendSince(b, m, m.Since()))
}

// OperationEnded writes the line of a subscription that has ended. Queries and mutations
// have the line of a request only.
func (o *Observer) OperationEnded(m *live.Member, e *live.OperationEnd) {
	l := o.access
	if l == nil || e.Kind != live.KindSubscription || e.How != live.EndError && !l.samples() {
		return
	}
	b := appendEnd(make([]byte, 0, 512), "subscription_end", e.Request, m)
	b = appendMember(b, `,"operation":"`, e.Name[:min(len(e.Name), maxOperation)])
	b = appendNumber(b, `,"events":`, int64(min(e.Events, math.MaxInt64)))
	b = appendMember(b, `,"end":"`, e.How)
	l.put(appendSince(b, m, e.Since))
}

// isUsual reports whether a connection that ends with a code has ended as it should.
func isUsual(code int) bool {
	return code == live.CloseNormal || code == live.CloseGoingAway || code == live.CloseRestart
}

// samples reports whether a success is written.
func (l *AccessLog) samples() bool { return l.sample == math.MaxUint64 || rand.Uint64() < l.sample }

// appendEnd appends the beginning of the line of an event. request is the id of the
// request that it ends.
func appendEnd(b []byte, event, request string, m *live.Member) []byte {
	b = appendTime(append(b, `{"ts":"`...), time.Now())
	b = append(append(b, `","event":"`...), event...)
	b = append(append(b, `","id":"`...), request...)
	b = append(append(b, `","connection":"`...), m.ID()...)
	b = appendMember(append(b, '"'), `,"api":"`, m.API())
	return appendMember(b, `,"key":"`, m.Owner().Name)
}

// appendSince appends how long ago something began, and the rest of the line.
func appendSince(b []byte, m *live.Member, began time.Time) []byte {
	b = appendNumber(b, `,"total_us":`, max(time.Since(began), 0).Microseconds())
	if m.Client.IsValid() {
		b = appendAddress(append(b, `,"ip":"`...), m.Client)
		b = append(b, '"')
	}
	return append(b, "}\n"...)
}
