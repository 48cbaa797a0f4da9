package wire

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestASlowAnswerLeavesItsConnection has a request come in two pieces, so that a
// time is set for the second one, and its answer take longer than that.
func TestASlowAnswerLeavesItsConnection(t *testing.T) {
	conf := testConfig()
	conf.ReadTimeout = 2 * time.Second // within which the second piece comes, however busy the machine
	_, addr := start(t, conf, handle(func(call *Call) {
		if string(call.Path) == "/slow" {
			<-time.After(conf.ReadTimeout + conf.ReadTimeout/4)
		}
		call.Answer.Status = 200
	}))
	c := dial(t, addr)
	br := bufio.NewReader(c)
	for _, piece := range []string{getX + "GET /slow HTTP/1.1\r\nHo", "st: a\r\n\r\n", getX} {
		_, _ = io.WriteString(c, piece)
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("behind %q: %v, %v", piece, resp, err)
		}
	}
}

// TestWhatComesBehindAnUnfinishedRequestIsHeardOf has a request come while the
// one before it is held, which was read together with the end of an unfinished
// one: what an earlier read has told of the socket is no longer so.
func TestWhatComesBehindAnUnfinishedRequestIsHeardOf(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	_, addr := start(t, testConfig(), handle(func(call *Call) {
		if string(call.Path) == "/held" {
			entered <- struct{}{}
			<-leave
		}
		call.Answer.Status = 200
	}))
	c := dial(t, addr)
	br := bufio.NewReader(c)
	answered := func() {
		t.Helper()
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	// Without hearing of it, no round is shorter than the late look; with it, one
	// is on a busy machine too.
	for heard, deadline := false, time.Now().Add(60*time.Second); !heard; {
		if time.Now().After(deadline) {
			t.Fatal("the last request is noticed by the late look only")
		}
		began := time.Now()
		_, _ = io.WriteString(c, getX+"GET /held HTTP/1.1\r\nHo")
		answered()
		_, _ = io.WriteString(c, "st: a\r\n\r\n"+getX)
		<-entered
		_, _ = io.WriteString(c, getX)
		<-time.After(time.Millisecond) // the poller hears of it
		leave <- struct{}{}
		answered()
		answered()
		answered()
		heard = time.Since(began) < recheck
	}
}

// TestAFaultLeavesNothingOfAnAnswerBehind has a handler panic once it has made
// an answer that holds something until it is sent.
func TestAFaultLeavesNothingOfAnAnswerBehind(t *testing.T) {
	made, left := make(chan *source, 1), make(chan net.Conn, 1)
	s, addr := start(t, testConfig(), handle(func(call *Call) {
		call.Answer.Status = 200
		if string(call.Path) == "/stream" {
			stream := newSource(10)
			made <- stream
			call.Answer.Stream, call.Answer.Length = stream, 10
		} else {
			call.Answer.Takeover = func(client net.Conn, _ []byte) { left <- client }
		}
		panic("a fault of ours")
	}))
	for _, path := range []string{"/stream", "/tunnel"} {
		if got := exchange(t, addr, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n"); got != "" {
			t.Errorf("got %q", got)
		}
	}
	select {
	case <-(<-made).closed:
	case <-time.After(60 * time.Second):
		t.Error("the stream was not closed")
	}
	select {
	case client := <-left:
		if client != nil {
			t.Error("a connection was handed over")
		}
	case <-time.After(60 * time.Second):
		t.Error("nobody was told that there will be no tunnel")
	}
	gone(t, s)
}
