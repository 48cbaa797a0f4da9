package introspect

import (
	"io"
	"net"
	"testing"
	"time"
)

func TestWhatAnUpstreamSaidBeforeItClosedIsRead(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	closed := make(chan error, 1)
	go func() {
		c, err := ln.Accept()
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, 1)) // the rest stays unread, so that closing resets
		}
		if err == nil {
			_, _ = io.WriteString(c, "why")
			err = c.Close()
		}
		closed <- err
	}()
	c, err := dialling(&net.Dialer{})(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("a request")); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(60 * time.Second); ; { // until the system has received the reset
		if _, err := c.(conn).Conn.Write([]byte("x")); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the connection was never broken off")
		}
	}
	if n, err := c.Write([]byte("body")); n != 4 || err != nil {
		t.Errorf("writing gave %d, %v", n, err)
	}
	if said, _ := io.ReadAll(c); string(said) != "why" {
		t.Errorf("read %q", said)
	}
}
