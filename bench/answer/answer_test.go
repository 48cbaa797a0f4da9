package answer

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
)

func responseWith(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nServer: x\r\ncontent-Length: %d\r\n\r\n%s", len(body), body)
}

func TestOnlyTheWantedResponsePasses(t *testing.T) {
	body, _ := Body([]byte("/x/1k"))
	good := responseWith(string(body))
	torn := bytes.Clone(body)
	torn[700]++
	for _, c := range []struct{ name, answer, want string }{
		{"as wanted", good, ""},
		{"another status", strings.Replace(good, "200", "502", 1), "status 502"},
		{"not HTTP", "220 smtp ready\r\n\r\n", "status -1"},
		{"shorter", responseWith(string(body[:1000])), "body of 1000 bytes"},
		{"cut off", good[:len(good)-1], "EOF"},
		{"one byte wrong", responseWith(string(torn)), "differs"},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", "without a Content-Length"},
		{"invalid length", "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n", "without a Content-Length"},
		{"bytes after", good + "H", "1 bytes after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, slow := range []bool{false, true} {
				r := NewReader(strings.NewReader(c.answer))
				if slow {
					if c.name == "bytes after" {
						continue // they come after the answer is complete
					}
					r.Reset(iotest.OneByteReader(strings.NewReader(c.answer)))
				}
				err := r.Next(&Want{Status: 200, Body: body})
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("one byte at a time %v: %v, want %q", slow, err, c.want)
				}
			}
		})
	}
}

func TestBodiesDifferBetweenKilobytes(t *testing.T) {
	body, ok := Body([]byte("64k"))
	if !ok || len(body) != 64<<10 {
		t.Fatalf("%d bytes", len(body))
	}
	for i := 1024; i < len(body); i += 1024 {
		if bytes.Equal(body[i-1024:i], body[i:min(i+1024, len(body))]) {
			t.Errorf("kilobyte %d is the one before", i/1024)
		}
	}
}
