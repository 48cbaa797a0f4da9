package wire

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// A handler that waits for something can tell that nobody waits for it any more,
// however the request came in, and is not misled by a client that stays.
func TestAHandlerCanTellThatItsClientHasLeft(t *testing.T) {
	for _, c := range []struct{ name, head, body string }{
		{"whole", "GET /a HTTP/1.1\r\nHost: gate\r\n\r\n", ""},
		{"in pieces", "POST /a HTTP/1.1\r\nHost: gate\r\nContent-Length: 4\r\n\r\n", "body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			came, left := make(chan bool), make(chan bool)
			_, addr := start(t, testConfig(), handle(func(call *Call) {
				came <- call.Gone()
				for deadline := time.Now().Add(60 * time.Second); !call.Gone() && time.Now().Before(deadline); {
				}
				left <- call.Gone()
			}))
			client := dial(t, addr)
			fmt.Fprint(client, c.head)
			if c.body != "" {
				fmt.Fprint(client, c.body)
			}
			if <-came {
				t.Error("gone while it is there")
			}
			_ = client.Close()
			if !<-left {
				t.Error("not gone after it left")
			}
		})
	}
}

func TestAClientThatHasSentMoreIsThere(t *testing.T) {
	told := make(chan bool, 2)
	_, addr := start(t, testConfig(), handle(func(call *Call) {
		told <- call.Gone()
		call.Answer.Status = 204
		call.Answer.NoBody = true
	}))
	client := dial(t, addr)
	fmt.Fprint(client, "GET /a HTTP/1.1\r\nHost: gate\r\n\r\nGET /b HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n")
	_, _ = io.Copy(io.Discard, client)
	if first, second := <-told, <-told; first || second {
		t.Error("gone while its next request is there")
	}
}

func TestACallOverNoConnectionIsNotGone(t *testing.T) {
	call, fault := NewCall([]byte("GET /a HTTP/1.1\r\nHost: gate\r\n\r\n"), testConfig())
	if fault != nil || call.Gone() {
		t.Errorf("%v", fault)
	}
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	s := sock{Conn: near}
	if s.ended() {
		t.Error("a connection in memory has ended")
	}
}
