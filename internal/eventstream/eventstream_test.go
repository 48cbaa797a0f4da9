package eventstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// read returns all that a reader makes of a stream, as text.
func read(from io.Reader, limit int) string {
	var said []string
	r := NewReader(from, limit)
	for {
		e, err := r.Next()
		switch {
		case errors.Is(err, ErrTooLarge):
			said = append(said, "!")
			continue
		case err != nil:
			return strings.Join(append(said, err.Error()), " ")
		}
		data := "-"
		if e.HasData {
			data = fmt.Sprintf("%q", e.Data)
		}
		said = append(said, fmt.Sprintf("%s/%s/%s", e.Name, r.LastID(), data))
	}
}

func TestEventsOfAStream(t *testing.T) {
	long := strings.Repeat("x", 100)
	for text, want := range map[string]string{
		"":                                "EOF",
		"data: 1":                         "EOF",
		"data: 1\n":                       "EOF",
		"data: 1\n\n":                     `//"1" EOF`,
		"data: 1\r\r":                     `//"1" EOF`,
		"data: 1\r\n\r\n":                 `//"1" EOF`,
		"data: 1\r\n\ndata: 2\n\r\n":      `//"1" //"2" EOF`,
		"\xef\xbb\xbfdata: 1\n\n":         `//"1" EOF`,
		"data:1\ndata:  2\ndata\n\n":      `//"1\n 2\n" EOF`,
		"data\n\n":                        `//"" EOF`,
		": note\nretry: 20\nother: x\n\n": "EOF",
		"event: a\nevent: b\nid: 7\ndata: 1\n\ndata: 2\n\n": `b/7/"1" /7/"2" EOF`,
		"event: a\n\ndata: 1\n\n":                           `a//- //"1" EOF`,
		"id: 1\n\ndata: x\n\nid\ndata: y\n\n":               `/1/"x" //"y" EOF`,
		"id: 1\ndata: x\n\nid: a\x00b\ndata: y\n\n":         `/1/"x" /1/"y" EOF`,
		"id: 1\ndata: x\n\nid: 2\ndata: y\n":                `/1/"x" EOF`,
		"data: " + long + "\nid: 3\n\ndata: 1\n\n":          `! /3/"1" EOF`,
		"data: " + long + "\n\ndata: 1\n\n":                 `! //"1" EOF`,
		"x" + long + ": 1\ndata: 0\n\ndata: 1\n\n":          `! //"1" EOF`,
		"data: 12345\ndata: 12345678901234567890123456\ndata: " + long + long + "\ndata: 2\n\ndata: 1\n\n": `! //"1" EOF`,
		"event: " + long + long + "\r\ndata: 0\r\n\r\ndata: 1\r\n\r\n":                                     `! //"1" EOF`,
	} {
		for name, from := range map[string]io.Reader{
			"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text)),
		} {
			if got := read(from, 32); got != want {
				t.Errorf("%q in %s: %s, want %s", text, name, got, want)
			}
		}
	}
}

func TestTheServersWishToWait(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"retry: 1500": 1500 * time.Millisecond, "retry:7": 7 * time.Millisecond,
		"retry: x": 0, "retry: -1": 0, "retry: 99999999999": 0, "retry": 0,
	} {
		r := NewReader(strings.NewReader(text+"\n\n"), 100)
		if _, err := r.Next(); !errors.Is(err, io.EOF) || r.Retry() != want {
			t.Errorf("%s: %v, %v", text, r.Retry(), err)
		}
	}
}

// An event is passed on when its last line ends, even with a carriage return that a line
// feed may follow.
func TestAnEventIsNotHeldBack(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n"} {
		from, to := io.Pipe()
		go func() { _, _ = to.Write([]byte("data: 1" + end + end)) }()
		if e, err := NewReader(from, 10).Next(); err != nil || string(e.Data) != "1" {
			t.Errorf("%q: %q, %v", end, e.Data, err)
		}
	}
}

func TestTheLastIDOutlivesItsStream(t *testing.T) {
	r := NewReader(strings.NewReader("data\n\nid\ndata\n\n"), 10)
	r.Continue("7")
	for _, want := range []string{"7", ""} {
		if _, err := r.Next(); err != nil || r.LastID() != want {
			t.Errorf("%q, %v; want %q", r.LastID(), err, want)
		}
	}
}

func TestALongIDIsIgnored(t *testing.T) {
	text := "id: 1\ndata\n\nid: " + strings.Repeat("x", maxID+1) + "\ndata\n\n"
	if got := read(strings.NewReader(text), 4096); got != `/1/"" /1/"" EOF` {
		t.Error(got)
	}
}

// However a stream is cut into packets, it has the same events, and what is kept of it is
// bounded.
func FuzzReader(f *testing.F) {
	f.Add([]byte("event: a\r\nid: 1\r\ndata: {}\r\n\r\ndata: 2\r\r"))
	f.Add([]byte("data: " + strings.Repeat("x", 50) + "\n\n: \ndata\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		const limit = 32
		whole := read(bytes.NewReader(text), limit)
		if bit := read(iotest.OneByteReader(bytes.NewReader(text)), limit); bit != whole {
			t.Fatalf("%s by byte, %s at once", bit, whole)
		}
		r := NewReader(bytes.NewReader(text), limit)
		for {
			e, err := r.Next()
			if len(e.Data) > limit || len(r.line) > limit+fieldName || bytes.IndexByte(e.Data, '\r') >= 0 {
				t.Fatalf("%q with a line of %d bytes", e.Data, len(r.line))
			}
			if err != nil && !errors.Is(err, ErrTooLarge) {
				return
			}
		}
	})
}
