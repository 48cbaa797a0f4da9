package wire

import (
	"bufio"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Requests of whom nobody hears for long are begun, however many they are, and so
// is the one that comes after all of them.
func TestHandlersThatWaitKeepNobodyOut(t *testing.T) {
	leave := make(chan struct{})
	s, addr := start(t, testConfig(), handle(func(call *Call) {
		if string(call.Path) == "/wait" {
			<-leave
		}
		call.Answer.Status = 200
	}))
	const many = 600
	var waiting sync.WaitGroup
	for range many {
		c := dial(t, addr)
		_, _ = io.WriteString(c, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
		waiting.Go(func() {
			if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
				t.Errorf("%v, %v", resp, err)
			}
		})
	}
	begun(t, s, many)
	c := dial(t, addr)
	_, _ = io.WriteString(c, getX)
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
	close(leave)
	waiting.Wait()
	begun(t, s, 0)
}

// What ends otherwise than with an answer makes room all the same.
func TestWhateverEndsARequestMakesRoomForTheNext(t *testing.T) {
	s, addr := start(t, testConfig(), handle(func(call *Call) {
		if string(call.Path) == "/fault" {
			panic("a fault of ours")
		}
		call.Answer.Status = 200
	}))
	for _, request := range []string{
		"GET /fault HTTP/1.1\r\nHost: a\r\n\r\n", // in a burst
		"POST /fault HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"no request\r\n\r\n",
		"GET / HTTP/1.1\r\nHos", // and gone
	} {
		c := dial(t, addr)
		_, _ = io.WriteString(c, request)
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		begun(t, s, 0)
	}
}

// begun waits until so many requests are under way.
func begun(t *testing.T, s *Server, want int) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(time.Minute); s.Stats().Begun != want; <-poll.C {
		if time.Now().After(end) {
			t.Fatalf("%d requests are under way, want %d", s.Stats().Begun, want)
		}
	}
}
