package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/internal/connections"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

const aliasedKey = `{"org_id":"o","alias":"shop","rate":-1,"quota_max":-1,"access_rights":{"ws":{},"old":{}}}`

// Operators see open connections with their keys and operations, and can end them.
func TestOpenConnectionsAreShown(t *testing.T) {
	s := withSockets(t)
	s.key("key", aliasedKey)
	s.key("other", keyOfAll)
	c := s.onAir("/ws/", "key")
	s.dial("/old/", "graphql-ws", "other").greets()
	open := s.LiveConnections()
	list, total := open.List(connections.Filter{Max: 10})
	if total != 2 || len(list) != 2 {
		t.Fatalf("%d connections: %+v", total, list)
	}
	first, err := json.Marshal(list[0])
	if err != nil || list[0].API != "old" || list[0].Protocol != "graphql-ws" || list[0].Key != s.Hasher.Hash("other") {
		t.Errorf("the newest is %s, %v", first, err)
	}
	behind, total := open.List(connections.Filter{Max: 1, After: list[0].Cursor()})
	if total != 2 || len(behind) != 1 || behind[0].ID != list[1].ID {
		t.Errorf("behind the first: %+v of %d", behind, total)
	}
	for _, f := range []connections.Filter{{API: "ws"}, {Key: s.Hasher.Hash("key")}, {Org: "o", API: "ws"}} {
		f.Max = 10
		if some, total := open.List(f); total != 1 || some[0].ID != list[1].ID {
			t.Errorf("%+v: %+v", f, some)
		}
	}
	if none, total := open.List(connections.Filter{Org: "another", Max: 10}); total != 0 || len(none) != 0 {
		t.Errorf("another organisation sees %+v", none)
	}
	one := open.Get(list[1].ID)
	if one == nil || len(one.Active) != 1 || one.Alias != "shop" || one.Address != "127.0.0.1" || one.MessagesIn != 2 || one.MessagesOut != 2 || one.LastMessage == nil || one.QueuedBytes != 0 {
		t.Fatalf("%+v", one)
	}
	if op := one.Active[0]; op.ID != "1" || op.Kind != "subscription" || op.Name != "forever" || op.Events != 1 || len(op.Request) != 32 {
		t.Errorf("%+v", op)
	}
	switch {
	case open.Get("") != nil, open.Get("zz") != nil, open.Get(strings.Repeat("0", 16)) != nil:
		t.Error("connections that are none are shown")
	case open.End(one.ID, "another", connections.End{Code: live.CloseNormal}):
		t.Error("another organisation ends the connection")
	case !open.End(one.ID, "o", connections.End{Code: live.CloseNormal, Reason: "Ended by an operator"}):
		t.Error("the connection is not found")
	}
	c.wants("websocket: close 1000 (normal): Ended by an operator")
	<-s.upstream.left
	if n := open.EndAll(connections.Filter{Key: s.Hasher.Hash("other")}, connections.End{Code: live.CloseRestart, Reason: "Connect again"}); n != 1 {
		t.Errorf("%d connections of the key were ended", n)
	}
	wait.Until(t, "all connections have ended", func() bool { _, total := open.List(connections.Filter{}); return total == 0 })
}

func TestConnectionsAreCountedAndLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	s, stop := withSocketLog(t, path)
	s.key("key", aliasedKey)
	s.key("other", keyOfAll)
	open := s.LiveConnections()
	c := s.onAir("/ws/", "key")
	c.say(asks("subscribe", "2", "{nope}"))
	c.hears()
	c.say(`{"id":"1","type":"complete"}`)
	<-s.upstream.left
	c.say("garbage").wants("websocket: close 4400: JSON syntax error")
	wait.Until(t, "the connection has ended", func() bool { _, total := open.List(connections.Filter{}); return total == 0 })
	if got := scrape(t, open.Metrics()); got != endedScrape {
		t.Errorf("the metrics are\n%s", got)
	}
	stop()
	name := s.Hasher.Hash("key")[:12]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []struct{ has, wants string }{
		{`"event":"subscription_end"`, `"api":"ws","key":"` + name + `","operation":"forever","events":1,"end":"client","total_us":`},
		{`"event":"connection_end"`, `"api":"ws","key":"` + name + `","protocol":"graphql-transport-ws","code":4400,"close_reason":"JSON syntax error","by":"gateway","messages_in":5,"messages_out":3,"operations":2,"total_us":`},
	} {
		line := lineWith(string(text), event.has)
		if !json.Valid([]byte(line)) || !strings.Contains(line, event.wants) {
			t.Errorf("the log has %s\nwant %s, in\n%s", line, event.wants, text)
		}
	}
}

const endedScrape = `sluice_subscriptions api=ws protocol=graphql-transport-ws 0
sluice_ws_closed_total api=ws code=4400 protocol=graphql-transport-ws 1
sluice_ws_connections api=ws protocol=graphql-transport-ws 0
sluice_ws_messages_total api=ws direction=in protocol=graphql-transport-ws 5
sluice_ws_messages_total api=ws direction=out protocol=graphql-transport-ws 3
sluice_ws_opened_total api=ws protocol=graphql-transport-ws 1
sluice_ws_operations api=ws protocol=graphql-transport-ws 0
`

// scrape returns the series of a collector, one on a line.
func scrape(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			b.WriteString(f.GetName())
			for _, l := range m.GetLabel() {
				fmt.Fprintf(&b, " %s=%s", l.GetName(), l.GetValue())
			}
			fmt.Fprintf(&b, " %v\n", m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	return b.String()
}

// withSocketLog is withSockets with an access log. finish writes it to the end.
func withSocketLog(t *testing.T, path string) (s *sockets, finish func()) {
	t.Helper()
	access, err := observe.OpenAccessLog(observe.AccessOptions{Target: "file", File: path, SampleOK: 1}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan struct{})
	go func() { access.Run(ctx); close(written) }()
	observer := observe.New(observe.Options{Access: access})
	s = withSockets(t, func(d *gateway.Deps) { d.Observe, d.Stages.Meter = observer, observer.NewMeter })
	return s, func() { stop(); <-written }
}

// lineWith returns the line of a log that has a text.
func lineWith(log, has string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, has) {
			return line
		}
	}
	return ""
}

// Logs show operations as clients sent them, not the request that the upstream got.
func TestOperationsAreLoggedAsTheyCame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	s, stop := withSocketLog(t, path)
	s.key("key", keyOfAll)
	for _, one := range []string{"/ws/", "/old/", "/events/", "/posted/"} {
		c := s.dial(one, "graphql-transport-ws", "key").greets().say(asks("subscribe", "1", "subscription three{count(to:3)}"))
		for c.hears() != `{"id":"1","type":"complete"}` {
		}
	}
	if err := s.Shutdown(t.Context()); err != nil { // all exchanges have ended
		t.Error(err)
	}
	stop()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for api, upstream := range map[string]string{"ws": "101", "old": "101", "events": "200", "posted": "200"} {
		line := lineWith(string(text), fmt.Sprintf(`"path":"/%s/","operation":"three"`, api))
		if !strings.Contains(line, `"method":"POST"`) || !strings.Contains(line, `"status":200,"bytes_in":43,`) || !strings.Contains(line, `"upstream_status":`+upstream) {
			t.Errorf("%s: %s, in\n%s", api, line, text)
		}
	}
}

// The answer to a refused operation names it, as explanations know it.
func TestRefusedOperationsAreExplained(t *testing.T) {
	s := withSockets(t, func(d *gateway.Deps) { d.Config.Refusals = 100 })
	s.key("key", `{"org_id":"o","rate":-1,"quota_max":-1,"access_rights":{"ws":{"limit":null,"restricted_types":[{"name":"Subscription","fields":["secret"]}]}}}`)
	const query = "subscription hidden{secret}"
	for _, protocol := range []string{"graphql-transport-ws", "graphql-ws"} {
		c := s.dial("/ws/", protocol, "key").greets()
		c.say(asks(map[string]string{"graphql-transport-ws": "subscribe", "graphql-ws": "start"}[protocol], "1", query))
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, text, err := c.ReadMessage()
		named := idOfRefusal.FindSubmatch(text)
		if err != nil || named == nil || !json.Valid(text) {
			t.Fatalf("%s, %v: no request id", text, err)
		}
		found, ok := s.Refusal(string(named[1]))
		if !ok || found.Method != "POST" || found.Path != "/ws/" || found.Stage != "graphql" || found.Key != s.Hasher.Hash("key")[:12] || found.API.ID != "ws" {
			t.Errorf("%s is explained by %+v", named[1], found)
		}
		description, _ := json.Marshal(map[string]any{
			"method": "POST", "url": "/ws/", "key": "key", "body": fmt.Sprintf(`{"query":%q}`, query),
			"headers": []string{"Content-Type: application/json", "Accept: application/json, text/event-stream"},
		})
		asked, err := explain.Parse(description)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Explain(asked).Outcome; got.Allowed || got.Stage != found.Stage || got.Reason != found.Reason {
			t.Errorf("the same as a request: %+v, refused as an operation: %+v", got, found)
		}
	}
}

// A subscription whose upstream is away is refused as it came.
func TestSubscriptionsWithoutAnUpstreamAreRecordedAsTheyCame(t *testing.T) {
	s := withSockets(t, func(d *gateway.Deps) { d.Config.Refusals = 100 })
	s.key("key", keyOfAll)
	s.upstream.Close()
	c := s.dial("/ws/", "graphql-transport-ws", "key").greets().say(asks("subscribe", "1", "subscription{count(to:3)}"))
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, text, err := c.ReadMessage()
	named := idOfRefusal.FindSubmatch(text)
	if err != nil || named == nil {
		t.Fatalf("%s, %v: no request id", text, err)
	}
	if found, ok := s.Refusal(string(named[1])); !ok || found.Method != "POST" || found.Reason != "upstream_connect" {
		t.Errorf("%+v", found)
	}
}
