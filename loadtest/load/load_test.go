package load

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func answerOf(body string) string {
	return "HTTP/1.1 200 OK\r\nServer: x\r\ncontent-Length: " + itoa(len(body)) + "\r\n\r\n" + body
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

func TestOnlyTheWantedAnswerIsGood(t *testing.T) {
	body, _ := Body([]byte("/x/1k"))
	good := answerOf(string(body))
	torn := bytes.Clone(body)
	torn[700]++
	for _, c := range []struct{ name, answer, want string }{
		{"as wanted", good, ""},
		{"another status", strings.Replace(good, "200", "502", 1), "status 502"},
		{"not HTTP", "220 smtp ready\r\n\r\n", "status -1"},
		{"shorter", answerOf(string(body[:1000])), "body of 1000 bytes"},
		{"cut off", good[:len(good)-1], "EOF"},
		{"one byte wrong", answerOf(string(torn)), "differs"},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", "without a Content-Length"},
		{"length that is none", "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n", "without a Content-Length"},
		{"bytes behind", good + "H", "1 bytes behind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, slow := range []bool{false, true} {
				r := NewReader(strings.NewReader(c.answer))
				if slow {
					if c.name == "bytes behind" {
						continue // they come after the answer is complete
					}
					r.from = iotest.OneByteReader(r.from)
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

func TestRunsBeginWithNewConnectionsWhereAsked(t *testing.T) {
	opened := 0
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			opened++
			answerOne(conn)
		}
	}()
	body, _ := Body([]byte("1k"))
	c := New(Plan{
		Addr: ln.Addr().String(), Conns: 1, Want: Want{Status: 200, Body: body}, Anew: true,
		Request: func(dst []byte, _ uint64) []byte { return append(dst, "GET /1k HTTP/1.1\r\nHost: x\r\n\r\n"...) },
	})
	for range 2 {
		c.Run(t.Context(), 10*time.Millisecond)
	}
	c.Close()
	if s := c.Stats(); s.Good == 0 || s.Bad > 0 {
		t.Errorf("good %d, bad %d: %v", s.Good, s.Bad, c.FirstError())
	}
	_ = ln.Close()
	<-served
	if opened != 2 {
		t.Errorf("%d connections, want 2", opened)
	}
}

// answerOne answers a connection until its client closes it.
func answerOne(conn net.Conn) {
	defer conn.Close()
	body, _ := Body([]byte("1k"))
	in := make([]byte, 1024)
	for {
		if _, err := conn.Read(in); err != nil {
			return
		}
		if _, err := io.WriteString(conn, answerOf(string(body))); err != nil {
			return
		}
	}
}
