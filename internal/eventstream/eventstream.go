// Package eventstream reads event streams: text/event-stream (WHATWG HTML, section 9.2).
package eventstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

const (
	readAhead = 4 << 10 // bytes that are read at once
	fieldName = len("data: ")
	maxID     = 1 << 10 // bytes; a longer id is ignored
)

// ErrTooLarge says that an event has more data than the limit. The next call of Next leaves
// out the rest of it.
var ErrTooLarge = errors.New("the event is too large")

// An Event is one event of a stream.
type Event struct {
	Name    string // "": it has none
	Data    []byte // lines are joined by a line feed
	HasData bool
}

// A Reader reads events.
type Reader struct {
	from  *bufio.Reader
	limit int

	line    []byte
	data    []byte
	id      []byte // of the last field id
	name    string
	lastID  string
	retry   time.Duration
	begun   bool // a line was read
	cr      bool // the last line ended with a carriage return: a line feed may follow
	cut     bool // the rest of the line is left out
	skips   bool // the rest of the event is left out
	hasData bool
}

// NewReader returns a reader of events with up to limit bytes of data.
func NewReader(from io.Reader, limit int) *Reader {
	return &Reader{from: bufio.NewReaderSize(from, readAhead), limit: limit}
}

// Continue has the reader take id for that of the last event, which another stream had. It is
// called before Next.
func (r *Reader) Continue(id string) { r.id, r.lastID = []byte(id), id }

// LastID returns the id of the last event that was read, or of one before it.
func (r *Reader) LastID() string { return r.lastID }

// Retry returns how long the server asks to wait before the next connection; 0: it does not.
func (r *Reader) Retry() time.Duration { return r.retry }

// Next returns the next event that has a name or data. Its data is valid until the following
// call. An event within which the stream ends is dropped. The error is ErrTooLarge, or that
// of the stream.
func (r *Reader) Next() (Event, error) {
	r.data, r.hasData, r.name = r.data[:0], false, ""
	for {
		if err := r.readLine(); err != nil {
			return Event{}, err
		}
		if len(r.line) > 0 {
			if err := r.field(); err != nil {
				return Event{}, err
			}
			continue
		}
		if string(r.id) != r.lastID {
			r.lastID = string(r.id)
		}
		whole := !r.skips
		r.skips = false
		if whole && (r.hasData || r.name != "") {
			return Event{Name: r.name, Data: r.data, HasData: r.hasData}, nil
		}
		r.data, r.hasData, r.name = r.data[:0], false, ""
	}
}

// field takes in a line.
func (r *Reader) field() error {
	field, value, _ := bytes.Cut(r.line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(field) {
	case "event":
		if !r.skips {
			r.name = string(value)
		}
	case "data":
		if r.skips {
			return nil
		}
		if r.hasData {
			r.data = append(r.data, '\n')
		}
		if len(r.data)+len(value) > r.limit {
			r.skips = true
			return ErrTooLarge
		}
		r.data, r.hasData = append(r.data, value...), true
	case "id":
		if len(value) <= maxID && bytes.IndexByte(value, 0) < 0 {
			r.id = append(r.id[:0], value...)
		}
	case "retry":
		if n, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			r.retry = time.Duration(n) * time.Millisecond
		}
	}
	return nil
}

// readLine reads a line without its end: CR, LF or both.
func (r *Reader) readLine() error {
	r.line = r.line[:0]
	for {
		c, err := r.from.ReadByte()
		if err != nil {
			return err
		}
		if c == '\n' && r.cr {
			r.cr = false
			continue
		}
		r.cr = c == '\r'
		switch {
		case r.cr || c == '\n':
			if r.cut {
				r.cut = false
				r.line = r.line[:0]
				continue
			}
			if !r.begun {
				r.begun = true
				r.line = bytes.TrimPrefix(r.line, []byte("\xef\xbb\xbf")) // byte order mark
			}
			return nil
		case r.cut:
		case len(r.line) == r.limit+fieldName:
			was := r.skips
			r.cut, r.skips, r.begun = true, true, true
			if !was {
				return ErrTooLarge
			}
		default:
			r.line = append(r.line, c)
		}
	}
}
