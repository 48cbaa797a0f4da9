package traffic

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// echoes answers an upgrade, and then repeats every line until the other side
// ends its. What is no upgrade it answers with the head that it got.
func echoes(c net.Conn, _ int) {
	var none seen
	br := bufio.NewReader(c)
	for {
		req, err := none.readRequest(br)
		if err != nil {
			return
		}
		if req.header.Get("Upgrade") == "" {
			head := none.lastHead()
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(head), head)
			continue
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Got: "+
			req.header.Get("Sec-WebSocket-Key")+"\r\n\r\nwelcome\n")
		_, _ = io.Copy(c, br)
		_ = halfClose(c)
		return
	}
}

// upgrade asks for another protocol and returns the answer's head.
func upgrade(t *testing.T, c net.Conn, path, more string) (*bufio.Reader, *http.Response) {
	t.Helper()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n%s\r\n", path, more)
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	return br, resp
}

func expectLine(t *testing.T, br *bufio.Reader, want string) {
	t.Helper()
	if got, err := br.ReadString('\n'); got != want {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

func TestUpgradesAreGovernedAndThenATunnel(t *testing.T) {
	t.Parallel()
	address := "http://" + testenv.RawOrigin(t, echoes)
	for _, way := range ways[:2] {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			g := newTraffic(t, rig.Merge(way.with, settings{"gateway.websockets": "true", "gateway.websocket_idle_timeout": "3s"}), nil,
				rig.APIDef("open", address, true), rig.APIDef("keyed", address, false))

			if _, resp := upgrade(t, connect(t, g.addr), "/keyed/x", ""); resp.StatusCode != 401 {
				t.Errorf("without a key: %d", resp.StatusCode)
			}
			key := g.newKey(object{"access_rights": rig.AccessTo("keyed"), "rate": 2, "per": 60})
			for i := range 2 {
				c := connect(t, g.addr)
				br, resp := upgrade(t, c, "/keyed/x", "Authorization: "+key+"\r\n")
				if resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "websocket" || resp.Header.Get("X-Got") != "abc" {
					t.Fatalf("tunnel %d: %v", i, resp)
				}
				expectLine(t, br, "welcome\n")
				large := strings.Repeat("x", 1<<20) + "\n"
				go func() { _, _ = io.WriteString(c, large) }()
				expectLine(t, br, large)
				_ = c.CloseWrite()
				if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
					t.Errorf("at the end: %q, %v", rest, err)
				}
			}
			if _, resp := upgrade(t, connect(t, g.addr), "/keyed/x", "Authorization: "+key+"\r\n"); resp.StatusCode != 429 {
				t.Errorf("beyond the rate: %d", resp.StatusCode)
			}

			start := time.Now()
			br, resp := upgrade(t, connect(t, g.addr), "/open/quiet", "")
			if resp.StatusCode != 101 {
				t.Fatalf("got %v", resp)
			}
			expectLine(t, br, "welcome\n")
			if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil || time.Since(start) < 3*time.Second {
				t.Errorf("in silence: %q, %v after %v", rest, err, time.Since(start))
			}
			if log := g.logged(); !strings.Contains(log, `"status":101`) {
				t.Errorf("the access log has no 101:\n%s", log)
			}
		})
	}
}

func TestUpgradesAreLeftOutUnlessAllowed(t *testing.T) {
	t.Parallel()
	g := newTraffic(t, nil, nil, rig.APIDef("open", "http://"+testenv.RawOrigin(t, echoes), true))
	_, resp := upgrade(t, connect(t, g.addr), "/open/x", "")
	head, err := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 || err != nil {
		t.Errorf("got %d %q, %v", resp.StatusCode, head, err)
	}
	if names(string(head), "Upgrade") || names(string(head), "Connection") {
		t.Errorf("the upstream was asked: %q", head)
	}
}

func TestAStopEndsTunnelsWhenItHasWaited(t *testing.T) {
	t.Parallel()
	g := newTraffic(t, settings{"gateway.websockets": "true", "gateway.drain_timeout": "5s"}, nil,
		rig.APIDef("open", "http://"+testenv.RawOrigin(t, echoes), true))
	c := connect(t, g.addr)
	br, resp := upgrade(t, c, "/open/x", "")
	if resp.StatusCode != 101 {
		t.Fatalf("got %v", resp)
	}
	expectLine(t, br, "welcome\n")
	g.Signal(syscall.SIGTERM)
	fmt.Fprint(c, "still there?\n")
	expectLine(t, br, "still there?\n") // it is let go on for as long as a stop may wait
	if _, err := br.ReadByte(); err == nil {
		t.Error("a byte came")
	}
	g.Wait()
}
