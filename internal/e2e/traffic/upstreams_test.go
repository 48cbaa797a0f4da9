package traffic

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// misdeed is one way in which an upstream answers a request. It returns whether
// the connection goes on.
type misdeed struct {
	name string
	do   func(u *unreliable, c net.Conn, id string) bool
	// sound means that the client must be served as if nothing had happened. It
	// is none where bytes lie beside the answer on a connection that was used a
	// moment ago: which of them are the answer cannot be told then, and a request
	// that must not be repeated is turned down.
	sound bool
}

// beside lists what has bytes beside its answer.
var beside = []string{"two answers in one", "304 with a body", "204 with a body"}

// bodyOf is the body that belongs to an id: any part of it tells whose it is.
func bodyOf(id string, size int) string {
	return strings.Repeat(id+";", size/(len(id)+1)+1)[:size]
}

// stolen is an answer to nobody.
const stolen = "HTTP/1.1 200 OK\r\nX-Echo: stolen\r\nX-Length: 6\r\nContent-Length: 6\r\n\r\nstolen"

func plainAnswer(id string, size int) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Echo: %s\r\nX-Length: %d\r\nContent-Length: %d\r\n\r\n%s", id, size, size, bodyOf(id, size))
}

func chunkedAnswer(id string, size int) string {
	body := bodyOf(id, size)
	half := size / 2
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Echo: %s\r\nX-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n%x;x=y\r\n%s\r\n%x\r\n%s\r\n0\r\nTrailer: x\r\n\r\n",
		id, size, half, body[:half], size-half, body[half:])
}

// says returns a misdeed that writes something.
func says(keep bool, text func(id string) string) func(*unreliable, net.Conn, string) bool {
	return func(_ *unreliable, c net.Conn, id string) bool {
		_, err := io.WriteString(c, text(id))
		return err == nil && keep
	}
}

// headOf is a head with the echo and other lines.
func headOf(id string, length int, lines string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nX-Echo: %s\r\nX-Length: %d\r\n%s\r\n", id, length, lines)
}

func misdeeds() []misdeed {
	return []misdeed{
		{"plain", says(true, func(id string) string { return plainAnswer(id, 500) }), true},
		{"large", says(true, func(id string) string { return plainAnswer(id, 150_000) }), true},
		{"chunked", says(true, func(id string) string { return chunkedAnswer(id, 700) }), true},
		{"chunked, large", says(true, func(id string) string { return chunkedAnswer(id, 90_000) }), true},
		{"closing", says(false, func(id string) string {
			return strings.Replace(plainAnswer(id, 400), "X-Echo", "Connection: close\r\nX-Echo", 1)
		}), true},
		{"closing without a word", says(false, func(id string) string { return plainAnswer(id, 400) }), true},
		{"until the end", says(false, func(id string) string { return headOf(id, 3000, "") + bodyOf(id, 3000) }), true},
		{"HTTP/1.0", says(false, func(id string) string {
			return strings.Replace(headOf(id, 300, ""), "HTTP/1.1", "HTTP/1.0", 1) + bodyOf(id, 300)
		}), true},
		{"interim answers", says(true, func(id string) string {
			return "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-Echo: stolen\r\n\r\n" + plainAnswer(id, 50)
		}), true},
		{"two answers in one", says(true, func(id string) string { return plainAnswer(id, 200) + stolen }), true},
		{"an answer nobody asked for, later", answersTwice, true},
		{"junk, later", junkLater, true},
		{"half-closed, later", func(_ *unreliable, c net.Conn, id string) bool {
			_, _ = io.WriteString(c, plainAnswer(id, 80))
			_ = halfClose(c)
			return true
		}, true},
		{"byte by byte", func(_ *unreliable, c net.Conn, id string) bool {
			for _, b := range []byte(chunkedAnswer(id, 40)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return false
				}
			}
			return true
		}, true},
		{"length and chunked", says(true, func(id string) string {
			return strings.Replace(chunkedAnswer(id, 60), "X-Echo", "Content-Length: 3\r\nX-Echo", 1) + stolen
		}), false},
		{"two lengths", says(true, func(id string) string {
			return headOf(id, 5, "Content-Length: 5\r\nContent-Length: 7\r\n") + "abcdefg" + stolen
		}), false},
		{"list of lengths", says(true, func(id string) string { return headOf(id, 5, "Content-Length: 5, 5\r\n") + "abcde" }), false},
		{"folded length", says(true, func(id string) string { return headOf(id, 5, "X: y\r\n Content-Length: 5\r\n") + "abcde" }), false},
		{"length too large", says(false, func(id string) string { return headOf(id, 5000, "Content-Length: 5000\r\n") + bodyOf(id, 4000) }), false},
		{"length too large, body large", says(false, func(id string) string { return headOf(id, 500_000, "Content-Length: 500000\r\n") + bodyOf(id, 300_000) }), false},
		{"length too small", says(true, func(id string) string { return headOf(id, 100, "Content-Length: 100\r\n") + bodyOf(id, 300) + stolen }), true},
		{"chunk too large", says(false, func(id string) string {
			return headOf(id, 500, "Transfer-Encoding: chunked\r\n") + "1f4\r\n" + bodyOf(id, 400)
		}), false},
		{"chunk too small", says(true, func(id string) string {
			return headOf(id, 500, "Transfer-Encoding: chunked\r\n") + "5\r\n" + bodyOf(id, 500) + "\r\n0\r\n\r\n" + stolen
		}), false},
		{"chunked without an end", says(false, func(id string) string { return strings.TrimSuffix(chunkedAnswer(id, 500), "0\r\nTrailer: x\r\n\r\n") }), false},
		{"reset before the answer", func(_ *unreliable, c net.Conn, _ string) bool { return reset(c) }, false},
		{"reset within the head", func(_ *unreliable, c net.Conn, id string) bool {
			_, _ = io.WriteString(c, plainAnswer(id, 500)[:30])
			return reset(c)
		}, false},
		{"reset within the body", func(_ *unreliable, c net.Conn, id string) bool {
			_, _ = io.WriteString(c, plainAnswer(id, 200_000)[:100_000])
			return reset(c)
		}, false},
		{"end before the answer", says(false, func(string) string { return "" }), false},
		{"stall before the answer", func(u *unreliable, _ net.Conn, _ string) bool { return u.stall() }, false},
		{"stall within the body", func(u *unreliable, c net.Conn, id string) bool {
			_, _ = io.WriteString(c, plainAnswer(id, 100_000)[:50_000])
			return u.stall()
		}, false},
		{"no HTTP", says(false, func(string) string { return "SSH-2.0-OpenSSH_9.2p1\r\n" }), false},
		{"HTTP/2", says(false, func(string) string { return "\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80" }), false},
		{"interim answers without end", says(true, func(id string) string {
			return strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 500) + plainAnswer(id, 50)
		}), false},
		{"huge head", says(true, func(id string) string {
			return headOf(id, 5, "X-Huge: "+strings.Repeat("x", 70_000)+"\r\nContent-Length: 5\r\n") + "abcde"
		}), false},
		{"head without end", func(u *unreliable, c net.Conn, _ string) bool {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for range 3000 {
				if _, err := io.WriteString(c, "X-More: and more of it, and more of it\r\n"); err != nil {
					break
				}
			}
			return false
		}, false},
		{"NUL in a line", says(true, func(id string) string { return headOf(id, 5, "X: a\x00b\r\nContent-Length: 5\r\n") + "abcde" }), false},
		{"101 unasked", says(true, func(string) string { return "HTTP/1.1 101 Switching Protocols\r\n\r\n" + stolen }), false},
		{"304 with a body", says(true, func(id string) string {
			return "HTTP/1.1 304 Not Modified\r\nX-Echo: " + id + "\r\nX-Length: 0\r\nContent-Length: 6\r\n\r\nstolen"
		}), true},
		{"204 with a body", says(true, func(id string) string {
			return "HTTP/1.1 204 No Content\r\nX-Echo: " + id + "\r\nX-Length: 0\r\n\r\n" + stolen
		}), true},
	}
}

// answersTwice sends another answer once the gateway may have pooled the
// connection.
func answersTwice(_ *unreliable, c net.Conn, id string) bool {
	_, _ = io.WriteString(c, plainAnswer(id, 120))
	time.AfterFunc(time.Millisecond, func() { _, _ = io.WriteString(c, stolen) })
	return true
}

func junkLater(_ *unreliable, c net.Conn, id string) bool {
	_, _ = io.WriteString(c, plainAnswer(id, 120))
	time.AfterFunc(time.Millisecond, func() { _, _ = io.WriteString(c, "\r\n") })
	return true
}

func halfClose(c net.Conn) error { return c.(interface{ CloseWrite() error }).CloseWrite() }

func reset(c net.Conn) bool {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
	return false
}

// unreliable is an upstream that misbehaves by the number in the path.
type unreliable struct {
	deeds []misdeed
	over  chan struct{} // closed at the end: stalls end as well
	mu    sync.Mutex
	asked map[string]int // by id
}

// stall waits for longer than anybody has patience.
func (u *unreliable) stall() bool {
	<-u.over
	return false
}

// serve answers requests for /<deed>/<id>.
func (u *unreliable) serve(c net.Conn, _ int) {
	var none seen
	br := bufio.NewReader(c)
	for {
		req, err := none.readRequest(br)
		if err != nil {
			return
		}
		if _, err := req.drain(); err != nil {
			return
		}
		parts := strings.Split(req.path, "/")
		deed, _ := strconv.Atoi(parts[1])
		u.mu.Lock()
		u.asked[parts[2]]++
		u.mu.Unlock()
		if !u.deeds[deed].do(u, c, parts[2]) {
			return
		}
	}
}

func newUnreliable(t *testing.T) (*unreliable, string) {
	u := &unreliable{deeds: misdeeds(), over: make(chan struct{}), asked: make(map[string]int)}
	address := "http://" + testenv.RawOrigin(t, u.serve)
	t.Cleanup(func() { close(u.over) })
	return u, address
}

// outcome is what became of one request.
type outcome uint8

const (
	answered outcome = iota
	turnedDown
	cut
	outcomes
)

// ask sends one request on a connection and judges the answer. An error says
// that the client was told something that is not true.
func ask(c net.Conn, br *bufio.Reader, method, path, id string) (outcome, error) {
	body := ""
	if method == http.MethodPost {
		body = "Content-Length: 3\r\n\r\nabc"
	} else {
		body = "\r\n"
	}
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: a\r\n%s", method, path, body); err != nil {
		return cut, nil
	}
	resp, err := http.ReadResponse(br, &http.Request{Method: method})
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
			return cut, nil
		}
		return cut, fmt.Errorf("answer: %w", err)
	}
	got, err := io.ReadAll(resp.Body)
	if resp.Header.Get("X-Generator") != "" {
		if resp.StatusCode != 502 && resp.StatusCode != 504 || err != nil {
			return turnedDown, fmt.Errorf("refused with %d, %v", resp.StatusCode, err)
		}
		return turnedDown, nil
	}
	if echo := resp.Header.Get("X-Echo"); echo != id {
		return answered, fmt.Errorf("the answer is that of %q", echo)
	}
	if string(got) != bodyOf(id, len(got)) {
		return answered, fmt.Errorf("the body is not its own: %.60q", got)
	}
	if err != nil {
		return cut, nil
	}
	if length, _ := strconv.Atoi(resp.Header.Get("X-Length")); len(got) != length && method != http.MethodHead {
		return answered, fmt.Errorf("%d bytes of %d were passed off as the whole", len(got), length)
	}
	return answered, nil
}

// Each misdeed by itself, between two good requests on the same connections.
func TestEachMisdeedOfAnUpstreamHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	u, address := newUnreliable(t)
	g := newTraffic(t, nil, nil, rig.Transport(rig.APIDef("u", address, true), object{"response_timeout": 2}))
	var tried int
	for n, deed := range u.deeds {
		for _, method := range []string{"GET", "POST"} {
			c := connect(t, g.addr)
			br := bufio.NewReader(c)
			for i, number := range []int{0, n, 0, 0} {
				tried++
				if i == 2 && strings.HasSuffix(deed.name, ", later") {
					<-time.After(30 * time.Millisecond) // as long as it takes to be later
				}
				id := fmt.Sprintf("%s-%d-%d", method, n, i)
				got, err := ask(c, br, method, fmt.Sprintf("/u/%d/%s", number, id), id)
				if err != nil {
					t.Errorf("%s, %s, request %d: %v", deed.name, method, i, err)
				}
				if got == turnedDown && i == 1 && method == "POST" && slices.Contains(beside, deed.name) {
					continue
				}
				if got == cut || got == turnedDown && deed.sound && (method == "GET" || i != 2) {
					if i != 1 || deed.sound {
						t.Errorf("%s, %s, request %d: outcome %d", deed.name, method, i, got)
					}
					c = connect(t, g.addr)
					br = bufio.NewReader(c)
				}
				if i == 1 && !deed.sound && got == answered && deed.name != "length and chunked" {
					t.Errorf("%s, %s was passed on as a good answer", deed.name, method)
				}
			}
			c.Close()
		}
	}
	t.Logf("%d misdeeds, %d requests", len(u.deeds), tried)
}

// Many clients at once while the upstream does all of it at random: everybody
// gets the own answer, a refusal, or a connection that is seen to be cut; a
// request that must not be repeated is not.
func TestNobodyGetsTheAnswerOfAnother(t *testing.T) {
	t.Parallel()
	for _, way := range ways[:2] {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			testNobodyGetsTheAnswerOfAnother(t, way.with)
		})
	}
}

func testNobodyGetsTheAnswerOfAnother(t *testing.T, with settings) {
	u, address := newUnreliable(t)
	g := newTraffic(t, rig.Merge(with, settings{"upstream.max_conns_per_host": "24", "upstream.max_conn_wait": "10s"}), nil,
		rig.Transport(rig.APIDef("u", address, true), object{"response_timeout": 0.3}))
	const clients, each, seed = 32, 150, 20261
	var counts [outcomes]atomic.Int64
	var working sync.WaitGroup
	for n := range clients {
		working.Go(func() {
			choose := rand.New(rand.NewPCG(seed, uint64(n)))
			c := connect(t, g.addr)
			br := bufio.NewReader(c)
			for i := range each {
				deed, method := choose.IntN(len(u.deeds)), []string{"GET", "POST", "HEAD"}[choose.IntN(3)]
				switch name := u.deeds[deed].name; {
				case strings.HasSuffix(name, "later"):
					deed = 0 // what comes once the next request was sent is its answer, by all that can be seen
				case strings.HasPrefix(name, "stall") && choose.IntN(4) > 0:
					deed = 0
				}
				if method == "HEAD" {
					deed = 0 // a body behind it would be junk, which the next request finds
				}
				id := fmt.Sprintf("%s-%d-%d", method, n, i)
				got, err := ask(c, br, method, fmt.Sprintf("/u/%d/%s", deed, id), id)
				counts[got].Add(1)
				if err != nil {
					t.Errorf("client %d, request %d, %s: %v", n, i, u.deeds[deed].name, err)
					return
				}
				if got == cut {
					c.Close()
					c = connect(t, g.addr)
					br = bufio.NewReader(c)
				}
			}
		})
	}
	working.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	repeated := 0
	for id, n := range u.asked {
		if n > 1 && strings.HasPrefix(id, "POST") || n > 2 {
			t.Errorf("%s was sent to the upstream %d times", id, n)
		}
		if n > 1 {
			repeated++
		}
	}
	t.Logf("seed %d: %d served, %d refused, %d cut; %d repeated safely", seed, counts[answered].Load(), counts[turnedDown].Load(), counts[cut].Load(), repeated)
}
