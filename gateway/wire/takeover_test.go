package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const upgradeX = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\n"

// shouting speaks a protocol of its own behind a 101: what comes goes back in
// capitals.
func shouting(call *Call) {
	call.Answer.Status = 101
	call.Answer.Append("Connection", []byte("Upgrade"))
	call.Answer.Append("Upgrade", []byte("shout"))
	call.Answer.Takeover = func(client net.Conn, received []byte) {
		if client == nil {
			return
		}
		r := io.MultiReader(strings.NewReader(string(received)), client)
		buf := make([]byte, 100)
		for {
			n, err := r.Read(buf)
			_, _ = io.WriteString(client, strings.ToUpper(string(buf[:n])))
			if err != nil {
				return
			}
		}
	}
}

func TestAConnectionIsTakenOver(t *testing.T) {
	s, addr := start(t, testConfig(), handle(shouting))
	c := dial(t, addr)
	_, _ = io.WriteString(c, upgradeX+"early")
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "shout" || len(resp.Header) != 2 {
		t.Fatalf("%+v, %v", resp, err)
	}
	for _, said := range []string{"early", "late"} {
		if said == "late" {
			_, _ = io.WriteString(c, said)
		}
		got := make([]byte, len(said))
		if _, err := io.ReadFull(br, got); err != nil || string(got) != strings.ToUpper(said) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	_ = c.CloseWrite()
	if rest, err := io.ReadAll(br); err != nil || len(rest) != 0 {
		t.Errorf("behind the end: %q, %v", rest, err)
	}
	gone(t, s)
}

func TestShutdownCutsAConnectionThatWasTakenOver(t *testing.T) {
	s, addr := start(t, testConfig(), handle(shouting))
	c := dial(t, addr)
	_, _ = io.WriteString(c, upgradeX)
	br := bufio.NewReader(c)
	if _, err := http.ReadResponse(br, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returned %v", err)
	}
	if n := s.Stats().Open; n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

func TestATakeoverIsToldThatNobodyIsThere(t *testing.T) {
	told := make(chan bool, 1)
	s, addr := start(t, testConfig(), handle(func(call *Call) {
		call.Answer.Status = 101
		call.Answer.Takeover = func(client net.Conn, _ []byte) { told <- client == nil }
	}))
	c := dial(t, addr)
	// The body was not read: what is behind the head is not the new protocol's.
	_, _ = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
	select {
	case nobody := <-told:
		if !nobody {
			t.Error("a body was taken for another protocol")
		}
	case <-time.After(60 * time.Second):
		t.Error("nobody was told")
	}
	gone(t, s)
}

func TestAKeptCallIsNobodyElses(t *testing.T) {
	kept := make(chan *Call, 1)
	_, addr := start(t, testConfig(), handle(func(call *Call) {
		if string(call.Path) == "/first" {
			kept <- call.Keep()
		}
		call.Answer.Status = 204
		call.Answer.NoBody, call.Answer.Length = true, -1
	}))
	c := dial(t, addr)
	br := bufio.NewReader(c)
	for _, request := range []string{
		"GET /first?a=1 HTTP/1.1\r\nHost: one\r\nAuthorization: key\r\nX-Other: 1\r\n\r\n",
		"PUT /other?b=2 HTTP/1.1\r\nHost: two\r\nAuthorization: yek\r\nX-Other: 2\r\n\r\n",
	} {
		_, _ = io.WriteString(c, request)
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 204 {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	got := (<-kept).Again(nil)
	if string(got.Method) != "GET" || string(got.Path) != "/first" || string(got.Query) != "a=1" || string(got.Host) != "one" ||
		string(got.Get(NameAuthorization)) != "key" || string(got.Header("x-other")) != "1" || !got.Peer.IsLoopback() || got.HasBody() || got.Gone() {
		t.Errorf("%+v", got)
	}
	if ctx := got.Ctx(); string(ctx.RequestURI()) != "/first?a=1" {
		t.Errorf("in the other form: %s", ctx.RequestURI())
	}
}
