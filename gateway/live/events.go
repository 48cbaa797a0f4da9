package live

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineBuffer is how much of an upstream's events is read at once, in bytes.
const lineBuffer = 4 << 10

var errLongEvent = errors.New("the upstream has sent an event that is too large")

// events reads a text/event-stream.
type events struct {
	lines *bufio.Reader
	line  []byte
	data  []byte
	crs   bool // the last line ended with a carriage return: a line feed may follow
}

func newEvents(from io.Reader) *events {
	return &events{lines: bufio.NewReaderSize(from, lineBuffer)}
}

// next returns the next event with data. The data is valid until the following call. An
// event that the stream ends within is dropped.
func (e *events) next() (name string, data []byte, err error) {
	e.data = e.data[:0]
	filled := false
	for {
		line, err := e.readLine()
		if err != nil {
			return "", nil, err
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch {
		case len(line) == 0 && (filled || name == typeComplete):
			return name, e.data, nil
		case len(line) == 0:
			name = ""
		case string(field) == "event":
			name = string(value)
		case string(field) == "data":
			if filled {
				e.data = append(e.data, '\n')
			}
			if e.data = append(e.data, value...); len(e.data) > maxEvent {
				return "", nil, errLongEvent
			}
			filled = true
		}
	}
}

// readLine returns a line without its end: CR, LF or both.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		c, err := e.lines.ReadByte()
		if err != nil {
			return nil, err
		}
		if c == '\n' && e.crs {
			e.crs = false
			continue
		}
		e.crs = c == '\r'
		if c == '\n' || c == '\r' {
			return e.line, nil
		}
		if e.line = append(e.line, c); len(e.line) > maxEvent {
			return nil, errLongEvent
		}
	}
}
