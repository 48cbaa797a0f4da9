package httpclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/httpcall"
	"github.com/sluicegate/sluice/internal/eventstream"
)

// Metadata of messages that come as events.
const (
	eventMeta = "http_client_event"    // name
	idMeta    = "http_client_event_id" // last id
)

const (
	maxEventMeta  = 1 << 10     // bytes of a name or id
	longestWish   = time.Minute // of a server, to wait before the next connection
	lineReadAhead = 4 << 10
)

// errTooLarge is a line or event that is left out.
var errTooLarge = errors.New("a line or event of the response is too large, and was left out")

// A scanner reads the messages of a response that goes on.
type scanner interface {
	// next returns a message. After errTooLarge it goes on with the one after.
	next() (body []byte, meta []stream.Meta, err error)
}

// follow takes the messages of one response, until it ends. It returns when to connect again.
func (in *input) follow() time.Time {
	call, failure := in.prepare()
	if failure != nil {
		return in.reconnect(failure, 0)
	}
	if call.Header["Accept"] == nil {
		call.Header.Set("Accept", "text/event-stream, */*;q=0.5")
	}
	if in.lastID != "" && !strings.ContainsFunc(in.lastID, unicode.IsControl) {
		call.Header.Set("Last-Event-ID", in.lastID)
	}
	in.site.State.Attempts.Add(1)
	answer, failure := call.Open(in.ctx)
	if failure != nil {
		return in.reconnect(failure, 0)
	}
	defer func() { _ = answer.Body.Close() }()
	in.enter(stream.Running)
	var wish time.Duration
	from := in.scan(answer)
	for {
		body, meta, err := from.next()
		if e, ok := from.(*events); ok {
			in.lastID, wish = e.from.LastID(), min(e.from.Retry(), longestWish)
		}
		switch {
		case errors.Is(err, errTooLarge):
			in.site.State.Fail(&stream.Failure{Class: stream.Permanent, Err: err})
			continue
		case errors.Is(err, io.EOF):
			return in.reconnect(nil, wish)
		case err != nil:
			return in.reconnect(call.Broke(err), wish)
		}
		in.attempt = 0
		if len(body) == 0 && in.conf.DropEmptyBodies {
			continue
		}
		in.emit(bytes.Clone(body), meta)
		if !in.wait() {
			return time.Time{}
		}
	}
}

// wait waits until more messages may be fetched. It returns false when the input stops.
func (in *input) wait() bool {
	for !in.pass.ready() {
		select {
		case <-in.wake:
		case <-in.ctx.Done():
			return false
		}
	}
	return true
}

// reconnect follows the end of a response, and returns when to connect again. failure is nil
// if the server has ended it.
func (in *input) reconnect(failure *stream.Failure, wish time.Duration) time.Time {
	if in.ctx.Err() != nil {
		return time.Time{}
	}
	if failure != nil {
		in.failed(failure)
		wish = max(wish, failure.After)
	}
	if !in.conf.Reconnect && (failure == nil || failure.Class == stream.Permanent || in.attempt >= in.conf.Retries) {
		in.mu.Lock()
		in.ended = true
		in.mu.Unlock()
		if failure == nil {
			in.enter(stream.Stopped)
		} else {
			in.enter(stream.Failing)
		}
		return time.Time{}
	}
	if failure == nil {
		in.enter(stream.Reconnecting)
	}
	in.attempt++
	return time.Now().Add(in.plan.Pause(in.attempt-1, wish))
}

// scan returns a scanner of a response: of events if it is an event stream, else of lines.
func (in *input) scan(answer *http.Response) scanner {
	meta := httpcall.Meta(answer.StatusCode, answer.Header)
	meta = meta[:len(meta):len(meta)] // messages share it
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err == nil && kind == "text/event-stream" {
		from := eventstream.NewReader(answer.Body, in.plan.Limit())
		from.Continue(in.lastID)
		return &events{from, meta}
	}
	return &lines{bufio.NewReaderSize(answer.Body, lineReadAhead), nil, in.plan.Limit(), meta}
}

// events reads an event stream.
type events struct {
	from *eventstream.Reader
	meta []stream.Meta
}

func (e *events) next() ([]byte, []stream.Meta, error) {
	for {
		one, err := e.from.Next()
		switch {
		case errors.Is(err, eventstream.ErrTooLarge):
			return nil, nil, errTooLarge
		case err != nil:
			return nil, nil, err
		case !one.HasData:
			continue
		}
		meta := e.meta
		if one.Name != "" && len(one.Name) <= maxEventMeta {
			meta = append(meta, stream.Meta{Name: eventMeta, Value: strings.ToValidUTF8(one.Name, "?")})
		}
		if id := e.from.LastID(); id != "" {
			meta = append(meta, stream.Meta{Name: idMeta, Value: strings.ToValidUTF8(id, "?")})
		}
		return one.Data, meta, nil
	}
}

// lines reads a response line by line: a line ends with LF, or CR and LF.
type lines struct {
	from  *bufio.Reader
	line  []byte
	limit int
	meta  []stream.Meta
}

func (l *lines) next() ([]byte, []stream.Meta, error) {
	l.line = l.line[:0]
	long := false
	for {
		part, err := l.from.ReadSlice('\n')
		if long = long || len(l.line)+len(part) > l.limit+len("\r\n"); !long {
			l.line = append(l.line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(l.line) > 0, errors.Is(err, io.EOF) && long: // the last line needs no end
		case err != nil:
			return nil, nil, err
		}
		line, ended := bytes.CutSuffix(l.line, []byte{'\n'})
		if ended {
			line = bytes.TrimSuffix(line, []byte{'\r'})
		}
		if long || len(line) > l.limit {
			return nil, nil, errTooLarge
		}
		return line, l.meta, nil
	}
}
