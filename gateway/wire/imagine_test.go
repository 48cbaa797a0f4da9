package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestImaginedBodiesComeAsOverAConnection(t *testing.T) {
	conf := testConfig()
	conf.MaxBody = 20_000
	large := bytes.Repeat([]byte("x"), inlineBody+1)
	for _, c := range []struct {
		name, head string
		body       []byte
		stream     bool
		fault      *Fault
		err        error
	}{
		{"none", "", nil, false, nil, nil},
		{"small", "Content-Length: 3\r\n", []byte("abc"), false, nil, nil},
		{"large", "Content-Length: 8193\r\n", large, true, nil, nil},
		{"waited for", "Content-Length: 3\r\nExpect: 100-continue\r\n", []byte("abc"), true, nil, nil},
		{"in chunks", "Transfer-Encoding: chunked\r\n", []byte("abc"), true, nil, nil},
		{"too large", "Content-Length: 20001\r\n", large, false, faultBody, nil},
		{"too large in chunks", "Transfer-Encoding: chunked\r\n", bytes.Repeat(large, 3), true, nil, ErrBodyTooLarge},
		{"of another length", "Content-Length: 4\r\n", []byte("abc"), false, faultLength, nil},
	} {
		call, fault := Imagine(append([]byte("POST / HTTP/1.1\r\nHost: a\r\n"+c.head+"\r\n"), c.body...), conf)
		if fault != c.fault {
			t.Errorf("%s: fault %v, want %v", c.name, fault, c.fault)
			continue
		}
		if fault != nil {
			continue
		}
		if (call.Stream != nil) != c.stream {
			t.Errorf("%s: stream %v", c.name, call.Stream)
			continue
		}
		body := call.Body
		if c.stream {
			var err error
			if body, err = io.ReadAll(call.Stream); !errors.Is(err, c.err) {
				t.Errorf("%s: %v, want %v", c.name, err, c.err)
			}
			if c.err != nil {
				continue
			}
		}
		if !bytes.Equal(body, c.body) {
			t.Errorf("%s: %d bytes, want %d", c.name, len(body), len(c.body))
		}
	}
}

func TestImaginedHeadsAreBounded(t *testing.T) {
	conf := testConfig()
	conf.MaxHeader = 1024
	url := append([]byte("GET /"), bytes.Repeat([]byte("x"), 2000)...)
	if _, fault := Imagine(append(url, " HTTP/1.1\r\nHost: a\r\n\r\n"...), conf); fault != faultURL {
		t.Errorf("long URL: %v", fault)
	}
	head := append([]byte("GET / HTTP/1.1\r\nHost: a\r\nX: "), bytes.Repeat([]byte("x"), 2000)...)
	if _, fault := Imagine(append(head, "\r\n\r\n"...), conf); fault != faultHead {
		t.Errorf("long head: %v", fault)
	}
}
