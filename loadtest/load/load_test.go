package load

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
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
	body, _ := answer.Body([]byte("1k"))
	c := New(Plan{
		Addr: ln.Addr().String(), Conns: 1, Want: answer.Want{Status: 200, Body: body}, Anew: true,
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
	body, _ := answer.Body([]byte("1k"))
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
