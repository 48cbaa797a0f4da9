package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// fetcher returns a Fetcher of an origin, and its pools, until the test ends.
func (r route) fetcher(t *testing.T, serve func(conn net.Conn, n int), change func(*Config)) (*Fetcher, *Pools) {
	t.Helper()
	g := &gate{conf: testConfig()}
	r.change(g)
	if change != nil {
		change(&g.conf)
	}
	pools := NewPools()
	t.Cleanup(pools.Close)
	f, err := CompileFetcher(&definition.API{ID: "test"}, "s", OriginOf(r.origin(t, serve)+"/x"), pools, g.conf)
	if err != nil {
		t.Fatal(err)
	}
	return f, pools
}

func fetchOf(method, body string) *Fetch {
	return &Fetch{Method: method, Target: "/a b?c", Lines: []byte("X-A: 1\r\n"), Body: []byte(body), Within: patience, Most: 100_000}
}

func TestFetchesReadWholeResponses(t *testing.T) {
	large := strings.Repeat("l", 90_000)
	responses := []struct{ response, want string }{
		{ok + "Content-Length: 2\r\n\r\nhi", "hi"},
		{"HTTP/1.1 103 Early Hints\r\n\r\n" + ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n1\r\ny\r\n0\r\n\r\n", "hey"},
		{"HTTP/1.1 204 No Content\r\n\r\n", ""},
		{ok + "Content-Length: 90000\r\n\r\n" + large, large},
		{ok + "Content-Length: 0\r\n\r\n", ""},
		{ok + "X-B: 2\r\n\r\n" + large, large}, // ends with the connection
	}
	const asked = " /a%20b?c HTTP/1.1\r\nHost: "
	routes(t, func(t *testing.T, r route) {
		f, pools := r.fetcher(t, func(conn net.Conn, n int) {
			br := bufio.NewReader(conn)
			for i := range responses {
				head := readRequest(br)
				if method := []string{"GET", "POST"}[i%2]; n != 0 || !strings.HasPrefix(head, method+asked) || !strings.Contains(head, "X-A: 1\r\n") || strings.Contains(head, "Content-Length: ") != (i%2 == 1) {
					t.Errorf("connection %d, request %d: %q", n, i, head)
				}
				_, _ = io.WriteString(conn, responses[i].response)
			}
		}, nil)
		for i, c := range responses {
			q := fetchOf("GET", "")
			if i%2 == 1 {
				q = fetchOf("POST", strings.Repeat("b", 20_000*i)) // with the head, and apart from it
			}
			got, err := f.Do(t.Context(), nil, q)
			if err != nil || string(got.Body) != c.want || got.Address == "" || got.Status/100 != 2 {
				t.Errorf("response %d: %d %.20s %v", i, got.Status, got.Body, err)
			}
		}
		wait.Until(t, "the connection is gone", func() bool { return pools.Stats() == Stats{} })
	})
}

func TestFetchesThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		response string
		want     func(error) bool
	}{
		"too long":                {ok + "Content-Length: 100001\r\n\r\n", func(err error) bool { return errors.Is(err, ErrTooLarge) }},
		"too long in chunks":      {ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("3e8\r\n"+strings.Repeat("c", 1000)+"\r\n", 101), func(err error) bool { return errors.Is(err, ErrTooLarge) }},
		"too long without length": {ok + "\r\n" + strings.Repeat("c", 100_001), func(err error) bool { return errors.Is(err, ErrTooLarge) }},
		"cut off":                 {ok + "Content-Length: 5\r\n\r\nhi", func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"cut off in a chunk":      {ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhi", func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"bad chunks":              {ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n", isMalformed},
		"not HTTP":                {"SSH-2.0\r\n", isMalformed},
		"another protocol":        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", isMalformed},
	} {
		routes(t, func(t *testing.T, r route) {
			f, pools := r.fetcher(t, func(conn net.Conn, _ int) {
				readRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, c.response)
			}, nil)
			if got, err := f.Do(t.Context(), nil, fetchOf("GET", "")); err == nil || !c.want(err) || got.Body != nil {
				t.Errorf("%s: %v %.20s", name, err, got.Body)
			}
			wait.Until(t, "the connection is gone", func() bool { return pools.Stats() == Stats{} })
		})
	}
}

func isMalformed(err error) bool {
	_, ok := errors.AsType[malformed](err)
	return ok
}

func TestFetchesEndInTime(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		f, _ := r.fetcher(t, func(conn net.Conn, _ int) {
			br := bufio.NewReader(conn)
			readRequest(br)
			_, _ = io.WriteString(conn, ok+"Content-Length: 2\r\n\r\nh")
			_, _ = br.ReadByte()
		}, nil)
		q := fetchOf("GET", "")
		q.Within = 20 * time.Millisecond
		if _, err := f.Do(t.Context(), nil, q); !IsTimeout(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestFetchesEndWithTheirContext(t *testing.T) {
	for name, begin := range map[string]string{"before the head": "", "within the body": ok + "Content-Length: 2\r\n\r\nh"} {
		routes(t, func(t *testing.T, r route) {
			arrived, ended := make(chan struct{}), make(chan struct{})
			f, pools := r.fetcher(t, func(conn net.Conn, _ int) {
				br := bufio.NewReader(conn)
				readRequest(br)
				_, _ = io.WriteString(conn, begin)
				close(arrived)
				_, _ = br.ReadByte()
				close(ended)
			}, func(c *Config) { c.MaxConns = 1 })
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 2)
			do := func() {
				_, err := f.Do(ctx, nil, fetchOf("GET", ""))
				failed <- err
			}
			go do()
			<-arrived
			go do() // which waits for the connection
			wait.Until(t, "the other one waits", func() bool {
				f.pool.mu.Lock()
				defer f.pool.mu.Unlock()
				return f.pool.queue.n == 1
			})
			cancel()
			for range 2 {
				if err := <-failed; !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", name, err)
				}
			}
			<-ended
			wait.Until(t, "the connection is gone", func() bool { return pools.Stats() == Stats{} })
		})
	}
}

// A connection that has served a request is not that request's any more.
func TestTheEndOfAContextLeavesConnectionsOfOthersAlone(t *testing.T) {
	routes(t, func(t *testing.T, r route) {
		f, pools := r.fetcher(t, func(conn net.Conn, n int) {
			for br := bufio.NewReader(conn); readRequest(br) != "" && n == 0; {
				_, _ = io.WriteString(conn, hello)
			}
		}, nil)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := f.Do(ctx, nil, fetchOf("POST", "")); err != nil {
				t.Error(err)
			}
			cancel()
		}
		if got := pools.Stats(); got != (Stats{Open: 1, Idle: 1}) {
			t.Errorf("%+v", got)
		}
	})
}

func TestFetchesAreRepeatedIfThatIsSafe(t *testing.T) {
	for method, want := range map[string]string{"GET": "hello", "POST": ""} {
		routes(t, func(t *testing.T, r route) {
			f, _ := r.fetcher(t, func(conn net.Conn, n int) {
				br := bufio.NewReader(conn)
				readRequest(br)
				_, _ = io.WriteString(conn, hello)
				if n == 0 {
					readRequest(br) // and the connection ends
				}
			}, nil)
			if _, err := f.Do(t.Context(), nil, fetchOf("GET", "")); err != nil {
				t.Fatal(err)
			}
			got, err := f.Do(t.Context(), nil, fetchOf(method, ""))
			if string(got.Body) != want || (err == nil) != (want != "") || got.Retries != len(want)/5 {
				t.Errorf("%s: %q %v, %d retries", method, got.Body, err, got.Retries)
			}
		})
	}
}
