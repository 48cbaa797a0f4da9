package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// mixed returns requests of all kinds, one behind the other, and what echo
// answers to each.
func mixed(r *rand.Rand, n int) (raw string, want []string) {
	var b strings.Builder
	for i := range n {
		path, body := fmt.Sprintf("/%d", i), strings.Repeat(fmt.Sprint(i%10), r.IntN(50))
		switch r.IntN(6) {
		case 0:
			fmt.Fprintf(&b, "\r\n")
			fallthrough
		case 1, 2:
			fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
			want = append(want, fmt.Sprintf(`200 GET %s? host=a body=""`, path))
			continue
		case 3:
			body = strings.Repeat(body, 400) // some come as streams
			fallthrough
		case 4:
			fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
		case 5:
			fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", path)
			for rest := body; len(rest) > 0; {
				size := 1 + r.IntN(len(rest))
				fmt.Fprintf(&b, "%x\r\n%s\r\n", size, rest[:size])
				rest = rest[size:]
			}
			fmt.Fprintf(&b, "0\r\nTrail: er\r\n\r\n")
		}
		want = append(want, fmt.Sprintf("200 POST %s? host=a body=%q", path, body))
	}
	return b.String(), want
}

func TestRequestsReadTheSameHoweverTheyAreCut(t *testing.T) {
	_, addr := start(t, testConfig(), &echo{readBody: true})
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 0))
		largest := []int{1, 7, 100, 2000, 60_000}[seed%5]
		raw, want := mixed(r, 3+min(60, largest/2))
		c := dial(t, addr)
		var sending sync.WaitGroup
		sending.Go(func() {
			for rest := raw; len(rest) > 0; {
				size := min(len(rest), 1+r.IntN(largest))
				_, _ = io.WriteString(c, rest[:size])
				rest = rest[size:]
				runtime.Gosched()
			}
		})
		br := bufio.NewReader(c)
		for i, w := range want {
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatalf("seed %d, answer %d: %v", seed, i, err)
			}
			body, err := io.ReadAll(resp.Body)
			if got := fmt.Sprintf("%d %s", resp.StatusCode, body); err != nil || got != w {
				t.Fatalf("seed %d, answer %d: %v\n got %.200s\nwant %.200s", seed, i, err, got, w)
			}
		}
		sending.Wait()
		_ = c.Close()
	}
}

// TestWhatComesWhileARequestIsServedIsHeardOf sends the next request only once
// the handler of the one before runs, so that no read finds both.
func TestWhatComesWhileARequestIsServedIsHeardOf(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	_, addr := start(t, testConfig(), handle(func(call *Call) {
		entered <- struct{}{}
		<-leave
		call.Answer.Status = 200
	}))
	c := dial(t, addr)
	br := bufio.NewReader(c)
	_, _ = io.WriteString(c, getX)
	<-entered
	for i := range 50 {
		_, _ = io.WriteString(c, getX)
		leave <- struct{}{}
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("answer %d: %v", i, err)
		}
		<-entered
	}
	leave <- struct{}{}
	if _, err := http.ReadResponse(br, nil); err != nil {
		t.Fatal(err)
	}
}

// TestAnEndThatComesWithTheLastRequestIsSeen has the end of a busy client's side
// come before the server looks: no later event tells of it.
func TestAnEndThatComesWithTheLastRequestIsSeen(t *testing.T) {
	conf := testConfig()
	conf.IdleTimeout = time.Hour // the client waits for a minute
	sent := make(chan struct{})
	s, addr := start(t, conf, handle(func(call *Call) {
		if string(call.Path) == "/wait" {
			<-sent
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
	for range 5 {
		_, _ = io.WriteString(c, getX)
		answered()
	}
	_, _ = io.WriteString(c, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
	_, _ = io.WriteString(c, getX)
	_ = c.CloseWrite()
	close(sent)
	answered()
	answered()
	if n, err := br.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v: the connection is held", n, err)
	}
	gone(t, s)
}

func TestABusyConnectionIsIdleForAsLongAsAnother(t *testing.T) {
	conf := testConfig()
	conf.IdleTimeout = 2 * time.Second // far longer than the late look takes
	s, addr := start(t, conf, &echo{})
	c := dial(t, addr)
	br := bufio.NewReader(c)
	var began time.Time // before the last request: the client may be late to read its answer
	for range 5 {
		began = time.Now()
		_, _ = io.WriteString(c, getX)
		if resp, err := http.ReadResponse(br, nil); err != nil {
			t.Fatal(err)
		} else {
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	}
	if _, err := br.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took < conf.IdleTimeout*3/4 {
		t.Errorf("the connection was ended after %v", took)
	}
	gone(t, s)
}

func TestShutdownEndsBusyConnections(t *testing.T) {
	for range 5 {
		s, addr := start(t, testConfig(), &echo{})
		var clients sync.WaitGroup
		for range 8 {
			c := dial(t, addr)
			clients.Go(func() {
				br := bufio.NewReader(c)
				for {
					_, _ = io.WriteString(c, getX)
					resp, err := http.ReadResponse(br, nil)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
				}
			})
		}
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown returned %v", err)
		}
		cancel()
		clients.Wait()
	}
}

func TestFieldsOfOneRequestAreGoneWithTheNext(t *testing.T) {
	_, addr := start(t, testConfig(), handle(func(call *Call) {
		call.Answer.Status = 200
		call.Answer.Body = fmt.Appendf(nil, "%q %q %d %q %v", call.Header("X-One"), call.Get(NameUserAgent), len(call.Fields), call.Body, call.Stream != nil)
	}))
	got := answers(t, exchange(t, addr,
		"POST / HTTP/1.1\r\nHost: a\r\nx-one:  1 \r\nUser-Agent: b\r\nContent-Length: 2\r\n\r\nhi"+getX+
			"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"+getX), "GET")
	want := []string{`200 "1" "b" 4 "hi" false`, `200 "" "" 1 "" false`, `200 "" "" 1 "" false`, `200 "" "" 1 "" false`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAFaultInABurstEndsItsConnectionOnly has a handler panic while the
// connection's descriptor is locked for reading.
func TestAFaultInABurstEndsItsConnectionOnly(t *testing.T) {
	s, addr := start(t, testConfig(), handle(func(call *Call) {
		if string(call.Path) == "/fault" {
			panic("a fault of ours")
		}
		call.Answer.Status = 200
	}))
	c := dial(t, addr)
	_, _ = io.WriteString(c, getX+"GET /fault HTTP/1.1\r\nHost: a\r\n\r\n"+getX)
	if got, err := io.ReadAll(c); err == nil && strings.Count(string(got), "HTTP/1.1") != 1 {
		t.Errorf("got %q", got)
	}
	gone(t, s)
	other := dial(t, addr)
	_, _ = io.WriteString(other, getX)
	if resp, err := http.ReadResponse(bufio.NewReader(other), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
}
