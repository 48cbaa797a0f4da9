package endpoint

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
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
	head() string                                        // header lines
	first() []byte                                       // what is sent at once
	message(b []byte, m *stream.Message) ([]byte, error) // b with the message behind
	beats() bool                                         // an idle connection gets heartbeats
	beat() []byte                                        // one of them
	last(wait time.Duration) []byte                      // the end: connect again after a time
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

func (f eventFormat) message(b []byte, m *stream.Message) ([]byte, error) {
	if m.ID != "" && isOneLine(m.ID) {
		b = append(append(append(b, "id: "...), m.ID...), '\n')
	}
	if !utf8.Valid(m.Body) || bytes.IndexByte(m.Body, 0) >= 0 {
		b = append(b, "event: binary\ndata: "...)
		return append(base64.StdEncoding.AppendEncode(b, m.Body), "\n\n"...), nil
	}
	if f.event != nil {
		name, err := f.event.Text(m.Doc)
		if err != nil {
			return b, fmt.Errorf("the name of the event: %w", err)
		}
		if !isOneLine(name) {
			return b, fmt.Errorf("the name of the event has a line break")
		}
		if name != "" {
			b = append(append(append(b, "event: "...), name...), '\n')
		}
	}
	for rest := m.Body; ; {
		end := bytes.IndexAny(rest, "\r\n")
		b = append(b, "data: "...)
		if end < 0 {
			return append(append(b, rest...), "\n\n"...), nil
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

func (f lineFormat) message(b []byte, m *stream.Message) ([]byte, error) {
	line := m.Body
	if bytes.ContainsAny(line, "\r\n") {
		var compact bytes.Buffer
		if json.Compact(&compact, line) == nil {
			line = compact.Bytes()
		} else if quoted, err := json.Marshal(string(line)); err == nil {
			line = quoted
		}
	}
	if !f.chunked {
		return append(append(b, line...), '\n'), nil
	}
	b = append(strconv.AppendInt(b, int64(len(line)+1), 16), "\r\n"...)
	return append(append(b, line...), "\n\r\n"...), nil
}
