package gateway_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// Events count under the limits of the key, whatever the upstream speaks. What happens to
// those over a limit is configured.
func TestEventsCountUnderTheLimitsOfTheKey(t *testing.T) {
	s := withSockets(t)
	event := func(n int) string { return fmt.Sprintf(`{"id":"1","type":"next","payload":{"data":{"count":%d}}}`, n) }
	const over = `{"id":"1","type":"complete"}`
	quota := func(left int) string { return fmt.Sprintf(`"rate":-1,"quota_max":%d,"quota_renewal_rate":3600`, left) }
	const rate = `"rate":2,"per":1,"quota_max":-1`
	ends := func(what string, after int) string {
		return fmt.Sprintf(`{"id":"1","type":"error","payload":[{"message":"%s","extensions":{"retry_after":%d}}]}`, what, after)
	}
	for i, c := range []struct {
		name, more, limits string
		hears              []string
	}{
		{"off", ``, quota(1), []string{event(1), event(2), event(3), over}},
		{"room", `"count_events":true`, quota(4), []string{event(1), event(2), event(3), over}},
		{"no limits", `"count_events":true,"at_limit":"drop"`, `"rate":-1,"quota_max":-1`, []string{event(1), event(2), event(3), over}},
		{"drop", `"count_events":true,"at_limit":"drop"`, quota(3), []string{event(1), event(2), over}},
		{"end", `"count_events":true,"at_limit":"end"`, quota(2), []string{event(1), ends("Quota exceeded", 3600)}},
		{"the default", `"count_events":true`, quota(2), []string{event(1), ends("Quota exceeded", 3600)}},
		{"delay under a quota", `"count_events":true,"at_limit":"delay"`, quota(3), []string{event(1), event(2), ends("Quota exceeded", 3600)}},
		{"delay under a rate", `"count_events":true,"at_limit":"delay"`, rate, []string{event(1), event(2), event(3), over}},
	} {
		for _, kind := range []string{"graphql-transport-ws", "graphql-ws"} {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				s.t = t
				def, err := definition.ParseAPI(fmt.Appendf(nil, `{"api_id":"ws","name":"ws","org_id":"o","proxy":{"listen_path":"/ws/","target_url":%q,"strip_listen_path":true},
					"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":%q,"proxy":{"subscription_type":%q,"subscriptions":{%s}}}}`, s.upstream.URL, socketSchema, kind, c.more))
				if err != nil {
					t.Fatal(err)
				}
				s.MustLoad(def)
				key := fmt.Sprint(kind, i)
				s.key(key, `{"org_id":"o",`+c.limits+`,"access_rights":{"ws":{}}}`)
				s.dial("/ws/", "graphql-transport-ws", key).greets().say(asks("subscribe", "1", "subscription{count(to:3)}")).wants(c.hears...).
					say(`{"type":"ping"}`).wants(`{"type":"pong"}`)
			})
		}
	}
}

// A client may leave, and the gateway stop, while an event waits for its rate.
func TestAClientLeavesWhileAnEventWaits(t *testing.T) {
	s := withSockets(t)
	def := s.api("ws", "graphql-transport-ws", `,"subscriptions":{"count_events":true,"at_limit":"delay"}`)
	s.MustLoad(def)
	s.key("key", `{"org_id":"o","rate":1,"per":3600,"quota_max":-1,"access_rights":{"ws":{}}}`)
	c := s.dial("/ws/", "graphql-transport-ws", "key").greets().say(asks("subscribe", "1", "subscription forever{count(to:9)}"))
	await(t, "the event to wait", func() bool { return s.LiveConnections().Size() == 1 })
	c.say(`{"id":"1","type":"complete"}`).say(`{"type":"ping"}`).wants(`{"type":"pong"}`)
	c.Close()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
