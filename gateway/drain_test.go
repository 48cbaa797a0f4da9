package gateway_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
)

// draining is a gateway with connections on which a subscription runs. What each client
// hears from then on arrives on said.
type draining struct {
	*sockets
	clients []*client
	said    chan [2]string // the client's place, and a message or how its connection ends
}

func drain(t *testing.T, connections int, over time.Duration) *draining {
	d := &draining{said: make(chan [2]string, 10*connections)}
	d.sockets = withSockets(t, func(deps *gateway.Deps) { deps.Config.SocketDrain = over })
	d.key("key", keyOfAll)
	for i := range connections {
		c := d.onAir("/ws/", "key")
		d.clients = append(d.clients, c)
		go func() {
			for {
				_, text, err := c.ReadMessage()
				if err != nil {
					d.said <- [2]string{fmt.Sprint(i), err.Error()}
					return
				}
				d.said <- [2]string{fmt.Sprint(i), string(text)}
			}
		}()
	}
	return d
}

const restarts = "websocket: close 1012: The gateway stops, please connect again"

// All clients are asked to connect again within the time for it, and none is left.
func TestAStopEndsAllConnections(t *testing.T) {
	const connections = 30
	d := drain(t, connections, 300*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	ended := map[string]bool{}
	for range connections {
		got := <-d.said
		if got[1] != restarts {
			t.Errorf("client %s heard %s", got[0], got[1])
		}
		ended[got[0]] = true
	}
	if n := d.LiveConnections().Size(); len(ended) != connections || n != 0 {
		t.Errorf("%d clients were asked to connect again, %d connections are left", len(ended), n)
	}
}

// Until its turn a connection goes on. When there is no more time, the rest ends at once.
func TestConnectionsGoOnUntilTheirTurn(t *testing.T) {
	d := drain(t, 3, time.Hour)
	ctx, skip := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- d.Shutdown(ctx) }()
	first := <-d.said
	if first[1] != restarts {
		t.Fatalf("heard %s", first)
	}
	for i, c := range d.clients {
		if fmt.Sprint(i) == first[0] {
			continue
		}
		c.say(asks("subscribe", "q", "{a}"))
		for _, want := range []string{`{"id":"q","type":"next","payload":{"data":{"a":15}}}`, `{"id":"q","type":"complete"}`} {
			if got := <-d.said; got[0] != fmt.Sprint(i) || got[1] != want {
				t.Fatalf("heard %s, want %s", got, want)
			}
		}
	}
	skip()
	<-d.said
	<-d.said
	if err := <-stopped; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	if n := d.LiveConnections().Size(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}
