package endpoint

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/mapping"
)

// A format is how messages are written to a connection that gets all of them.
type format interface {
	head() string                                     // header lines
	first() []byte                                    // what is sent at once
	eventOf(m *stream.Message) (event, error)         // what is written of a message
	appendEvent(b []byte, e *event, id string) []byte // b with the event behind
	beats() bool                                      // an idle connection gets heartbeats
	beat() []byte                                     // one of them
	last(wait time.Duration) []byte                   // the end: connect again after a time
}

// An event is a message as it is written.
type event struct {
	name string
	body []byte
}

// An eventFormat writes an event stream (WHATWG HTML, section 9.2).
type eventFormat struct{ event *mapping.Template }

func (eventFormat) head() string {
	return "Content-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n"
}

// first has proxies pass the head on.
func (eventFormat) first() []byte { return []byte("retry: 2000\n: stream\n\n") }
func (eventFormat) beats() bool   { return true }
func (eventFormat) beat() []byte  { return []byte(":\n\n") }

func (eventFormat) last(wait time.Duration) []byte {
	return append(strconv.AppendInt([]byte("retry: "), wait.Milliseconds(), 10), "\n\n"...)
}

func (f eventFormat) eventOf(m *stream.Message) (event, error) {
	e := event{body: m.Body}
	if f.event == nil || isBinary(m.Body) {
		return e, nil
	}
	var err error
	if e.name, err = f.event.Text(m.Doc); err != nil {
		return e, fmt.Errorf("the name of the event: %w", err)
	}
	if !isOneLine(e.name) {
		return e, errors.New("the name of the event has a line break")
	}
	return e, nil
}

// isBinary reports whether a body cannot be written as text.
func isBinary(body []byte) bool { return !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 }

func (eventFormat) appendEvent(b []byte, e *event, id string) []byte {
	if id != "" && isOneLine(id) {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	if isBinary(e.body) {
		b = append(b, "event: binary\ndata: "...)
		return append(base64.StdEncoding.AppendEncode(b, e.body), "\n\n"...)
	}
	if e.name != "" {
		b = append(append(append(b, "event: "...), e.name...), '\n')
	}
	for rest := e.body; ; {
		end := bytes.IndexAny(rest, "\r\n")
		b = append(b, "data: "...)
		if end < 0 {
			return append(append(b, rest...), "\n\n"...)
		}
		b = append(append(b, rest[:end]...), '\n')
		if rest[end] == '\r' && end+1 < len(rest) && rest[end+1] == '\n' {
			end++
		}
		rest = rest[end+1:]
	}
}

// isOneLine reports whether a text can be the value of a field of an event.
func isOneLine(text string) bool { return !strings.ContainsAny(text, "\r\n\x00") }

// A lineFormat writes one message per line. A message with line breaks is written compactly
// if it is JSON, and otherwise as a JSON string.
type lineFormat struct{ chunked bool }

func (f lineFormat) head() string {
	const plain = "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n"
	if f.chunked {
		return plain + "Transfer-Encoding: chunked\r\n"
	}
	return plain
}

func (lineFormat) first() []byte { return nil }
func (lineFormat) beats() bool   { return false }
func (lineFormat) beat() []byte  { return nil }

func (f lineFormat) last(time.Duration) []byte {
	if f.chunked {
		return []byte("0\r\n\r\n")
	}
	return nil
}

func (lineFormat) eventOf(m *stream.Message) (event, error) { return event{body: m.Body}, nil }

func (f lineFormat) appendEvent(b []byte, e *event, _ string) []byte {
	line := e.body
	if bytes.ContainsAny(line, "\r\n") {
		var compact bytes.Buffer
		if json.Compact(&compact, line) == nil {
			line = compact.Bytes()
		} else if quoted, err := json.Marshal(string(line)); err == nil {
			line = quoted
		}
	}
	if !f.chunked {
		return append(append(b, line...), '\n')
	}
	b = append(strconv.AppendInt(b, int64(len(line)+1), 16), "\r\n"...)
	return append(append(b, line...), "\n\r\n"...)
}
