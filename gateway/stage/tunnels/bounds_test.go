package tunnels

import (
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

func bounded(perKey, perAPI int) *Registry {
	return New(Options{PerKey: perKey, PerAPI: perAPI, Log: slog.New(slog.DiscardHandler)})
}

// nothing is a takeover that returns at once.
func nothing(net.Conn, []byte) {}

func TestEachBoundHoldsForItself(t *testing.T) {
	r := bounded(2, 3)
	ann, bob := About{API: "a", Identity: "ann"}, About{API: "a", Identity: "bob"}
	other, nobody := About{API: "b", Identity: "ann"}, About{API: "a"}
	hold := func(about About, want Bound) Takeover {
		t.Helper()
		if got := r.Full(about); got != want {
			t.Errorf("%+v: foretold %d, want %d", about, got, want)
		}
		over, full := r.Hold(nothing, about, newRecheck())
		if full != want || (over == nil) != (want != Free) {
			t.Errorf("%+v: %d, want %d", about, full, want)
		}
		return over
	}
	first := hold(ann, Free)
	hold(other, Free)
	hold(ann, OfKey)
	hold(other, OfKey)
	hold(bob, Free)
	hold(nobody, Free)
	hold(nobody, OfAPI)
	hold(bob, OfAPI)
	first(nil, nil)
	hold(ann, Free)
	hold(bob, OfAPI)
	if r := bounded(0, 0); r.Full(ann) != Free {
		t.Error("full without bounds")
	}
}

// whatever is a takeover that ends in one of the ways in which they do.
func whatever(client net.Conn, _ []byte) {
	if client == nil {
		return
	}
	switch rand.IntN(4) {
	case 0:
		panic("a fault while bytes are passed on")
	case 1:
		_ = client.Close()
	case 2:
		_, _ = io.Copy(io.Discard, client)
	}
}

func TestTunnelsThatEndInAnyWayLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perKey, perAPI, rounds = 5, 12, 300
		r := begin(t, time.Second)
		r.opts.PerKey, r.opts.PerAPI = perKey, perAPI
		var openNow, most, refused atomic.Int64
		var all sync.WaitGroup
		for i := range 30 {
			about := About{API: "a", Identity: string(rune('a' + i%5))}
			all.Go(func() {
				for range rounds {
					p := newRecheck()
					if rand.IntN(4) == 0 {
						p.end(errors.New("revoked"))
					}
					over, full := r.Hold(func(client net.Conn, received []byte) {
						now := openNow.Add(1)
						defer openNow.Add(-1)
						for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
						}
						whatever(client, received)
					}, about, p)
					if full != Free {
						refused.Add(1)
						time.Sleep(time.Millisecond)
						continue
					}
					pass(over)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if len(r.ofAPI)+len(r.ofKey)+len(r.open) != 0 {
			t.Errorf("left behind: %v, %v, %d open", r.ofAPI, r.ofKey, len(r.open))
		}
		if most.Load() > perAPI || refused.Load() == 0 {
			t.Errorf("%d at once, %d refused", most.Load(), refused.Load())
		}
	})
}

// pass gives a takeover a client who is there or not, and who leaves sooner or
// later.
func pass(over Takeover) {
	defer func() { _ = recover() }() // as the server does
	if rand.IntN(4) == 0 {
		over(nil, nil)
		return
	}
	client, other := net.Pipe()
	left := make(chan struct{})
	go func() {
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
		_ = other.Close()
		close(left)
	}()
	defer func() { <-left }()
	over(client, nil)
}

// asking is an exchange of a request.
func asking(t *testing.T, def *definition.API, method string, lines ...string) *pipeline.Exchange {
	t.Helper()
	call := &wire.Call{Method: []byte(method), Started: time.Now()}
	call.SetLines([]byte(strings.Join(lines, "\r\n") + "\r\n"))
	ex := pipeline.For(call)
	ex.API, ex.KeyHash = &pipeline.API{Definition: def}, "ann"
	return ex
}

func TestAWishForATunnelTooManyIsRefused(t *testing.T) {
	def := &definition.API{ID: "a"}
	wish := []string{"Connection: keep-alive, Upgrade", "Upgrade: websocket"}
	full := bounded(1, 0)
	if _, got := full.Hold(nothing, About{API: "b", Identity: "ann"}, newRecheck()); got != Free {
		t.Fatal(got)
	}
	crowded := bounded(0, 1)
	if _, got := crowded.Hold(nothing, About{API: "a", Identity: "bob"}, newRecheck()); got != Free {
		t.Fatal(got)
	}
	for _, c := range []struct {
		name     string
		registry *Registry
		method   string
		lines    []string
		want     *pipeline.Rejection
		retry    int
	}{
		{"a key with no room", full, "GET", wish, keyFull, 0},
		{"an API with no room", crowded, "GET", wish, apiFull, retryAfter},
		{"room", bounded(1, 1), "GET", wish, nil, 0},
		{"no wish", full, "GET", []string{"Connection: close"}, nil, 0},
		{"a wish that the connection does not name", full, "GET", []string{"Connection: close", "Upgrade: websocket"}, nil, 0},
		{"a wish for HTTP", full, "GET", []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"}, nil, 0},
		{"a wish of a POST", full, "POST", wish, nil, 0},
	} {
		s := c.registry.Compile(def)
		ex := asking(t, def, c.method, c.lines...)
		if v := s.Handle(ex); ex.Rejection != c.want || (v == pipeline.Next) != (c.want == nil) || ex.RetryAfter != c.retry {
			t.Errorf("%s: verdict %d, %+v, retry after %d", c.name, v, ex.Rejection, ex.RetryAfter)
		}
		f := pipeline.Finding{}
		s.(pipeline.Explainer).Explain(ex, &f)
		if (f.Fix != "") != (c.want != nil) {
			t.Errorf("%s: explained as %+v", c.name, f)
		}
		if n := testing.AllocsPerRun(100, func() { s.Handle(ex) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

func TestOnlyAPIsWithTunnelsToBoundHaveTheStage(t *testing.T) {
	keyless := &definition.API{UseKeyless: true}
	graph := &definition.API{GraphQL: &definition.GraphQL{Enabled: true}}
	for name, c := range map[string]struct {
		registry *Registry
		def      *definition.API
		want     bool
	}{
		"nobody watches":        {nil, &definition.API{}, false},
		"no bounds":             {bounded(0, 0), &definition.API{}, false},
		"of keys":               {bounded(1, 0), &definition.API{}, true},
		"of keys, without keys": {bounded(1, 0), keyless, false},
		"of APIs, without keys": {bounded(0, 1), keyless, true},
		"GraphQL":               {bounded(1, 1), graph, false},
	} {
		if s := c.registry.Compile(c.def); (s != nil) != c.want {
			t.Errorf("%s: %v", name, s)
		}
	}
}

func TestATunnelThroughSeveralAPIsIsOneOfItsKey(t *testing.T) {
	ex := asking(t, &definition.API{ID: "front"}, "GET")
	next := asking(t, &definition.API{ID: "behind"}, "GET")
	next.Parent = ex
	if got := AboutOf(next); got.API != "behind" || got.Identity != "" {
		t.Errorf("%+v", got)
	}
	next.KeyHash = "bob"
	if got := AboutOf(next); got.Identity != "bob" {
		t.Errorf("another key: %+v", got)
	}
	if got := AboutOf(ex); got.API != "front" || got.Identity != "ann" || got.Again {
		t.Errorf("%+v", got)
	}
	last := asking(t, &definition.API{ID: "front"}, "GET")
	last.Parent = next
	r := bounded(0, 1)
	for _, way := range [...]*pipeline.Exchange{last, next, ex} { // as they are answered
		if _, full := r.Hold(nothing, AboutOf(way), newRecheck()); full != Free {
			t.Errorf("API %s is full of the tunnel that comes back to one: %d", way.API.Definition.ID, full)
		}
	}
	if full := r.Full(AboutOf(ex)); full != OfAPI {
		t.Errorf("a second tunnel: %d", full)
	}
}
