package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/connections"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// fakeGateway answers the questions that it gets with its polls from connections that it
// has. It is not told of APIs.
type fakeGateway struct {
	b    *bench
	name string
	desk connections.Desk
	more func(question string) any // answers other questions; nil: none does

	mu   sync.Mutex
	open []connections.Connection
	how  []connections.End
}

func (g *fakeGateway) List(f connections.Filter) (list []connections.Connection, total int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	after, behind := connections.ParseCursor(f.After)
	for _, c := range g.open {
		if (f.Org == "" || f.Org == c.Org) && (f.API == "" || f.API == c.API) && (f.Key == "" || f.Key == c.Key) {
			total++
			if !behind || c.Since.UnixMicro() < after.Since {
				list = append(list, c)
			}
		}
	}
	return list[:min(f.Max, len(list))], total
}

func (g *fakeGateway) Get(id string) *connections.Connection {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.open {
		if c.ID == id {
			c.Active = []connections.Operation{{ID: "1", Kind: "subscription", Name: "prices", Events: 3}}
			return &c
		}
	}
	return nil
}

func (g *fakeGateway) End(id, org string, how connections.End) bool {
	if c := g.Get(id); c == nil || org != "" && c.Org != org {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.how = append(g.how, how)
	return true
}

func (g *fakeGateway) ended() []connections.End {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.how
}

func (g *fakeGateway) EndAll(connections.Filter, connections.End) int { return 0 }

// run polls at an admin until the test ends.
func (g *fakeGateway) run(at *admintest.Client) {
	g.desk.Source = g
	ended := make(chan struct{})
	ctx := g.b.t.Context()
	go func() {
		defer close(ended)
		for seen, tag := "", ""; ctx.Err() == nil; {
			r, err := at.Try("GET", "/api/gateway/bundle?wait=1s", gatewayToken, "", "X-Sluice-Gateway", g.name, "If-None-Match", tag, "X-Sluice-Asked", seen)
			if err != nil {
				continue // the test ends
			}
			tag = r.Header.Get("ETag")
			for one := range strings.SplitSeq(r.Header.Get("X-Sluice-Asked"), ",") {
				name, question, _ := strings.Cut(one, ".")
				answer := g.answer(question)
				if name == "" || answer == nil {
					continue
				}
				seen += "," + name
				body, _ := json.Marshal(map[string]any{"question": name, "answer": answer})
				if r, err := at.Try("POST", "/api/gateway/answers", gatewayToken, string(body)); err != nil || r.Status != 200 {
					g.b.t.Errorf("the answer was not taken: %+v, %v", r, err)
				}
			}
		}
	}()
	g.b.t.Cleanup(func() { <-ended })
}

func (g *fakeGateway) answer(question string) any {
	if answer := g.desk.Answer(question, g.name); answer != nil {
		return answer
	}
	if g.more == nil {
		return nil
	}
	return g.more(question)
}

// connectionAt returns an open connection that began some minutes after a moment.
func connectionAt(n int, org, key string) connections.Connection {
	return connections.Connection{
		ID: fmt.Sprintf("%016x", n), API: "a", Org: org, Key: key, Protocol: "graphql-ws", Address: "192.0.2.1",
		Since: time.Date(2026, 11, 21, 12, n, 0, 0, time.UTC),
	}
}

// Two gateways of two admins are asked for their connections by one of these.
func TestConnectionsOfAllGatewaysAreListedAndEnded(t *testing.T) {
	b := start(t)
	_, url := b.serve(b.Open(store.Options{MaxConns: 10}), func(d *Deps) { d.Metrics = nil })
	org, err := b.store.FirstOrg(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	near := &fakeGateway{b: b, name: "near", open: []connections.Connection{connectionAt(3, org, "k"), connectionAt(1, org, "k")}}
	far := &fakeGateway{b: b, name: "far", open: []connections.Connection{connectionAt(4, "second", "k"), connectionAt(2, org, "l")}}
	for n := range 300 { // too many to be announced in one piece
		far.open = append(far.open, connectionAt(-n-1, org, fmt.Sprintf("%064x", n*n*7919)))
	}
	near.run(b.Client)
	far.run(b.Client.At(url))
	wait.Until(t, "both gateways have reported", func() bool {
		return len(b.Call("GET", "/api/gateways", b.viewer, "").Object()["gateways"].([]any)) == 2
	})
	// A machine that is busy may not let gateways answer in time.
	ask := func(method, path, who string) (r *admintest.Answer) {
		wait.Until(t, "the gateways have answered", func() bool {
			r = b.Call(method, path, who, "")
			return r.Status != 503 && !strings.Contains(string(r.Body), `"silent":["`)
		})
		return r
	}
	list := func(query string) (got connectionList) {
		ask("GET", "/api/connections?"+query, b.viewer).Want(200).Into(&got)
		return got
	}
	ids := func(l connectionList) (text string) {
		for _, c := range l.Connections {
			text += c.ID[15:] + c.Gateway + " "
		}
		return text
	}
	first := list("page_size=2")
	if got := ids(first); got != "3near 2far " || first.Total != 303 || first.Next == "" || strings.Join(first.Gateways, " ") != "far near" || len(first.Silent) != 0 {
		t.Errorf("%s of %+v", got, first)
	}
	if then := list("page_size=1&after=" + first.Next); ids(then) != "1near " || then.Next == "" {
		t.Errorf("%+v", then)
	}
	if all := list("page_size=500"); len(all.Connections) != 303 || all.Next != "" {
		t.Errorf("%d connections, then %q", len(all.Connections), all.Next)
	}
	if got := ids(list("page_size=2&key_hash=k")); got != "3near 1near " {
		t.Errorf("of a key: %s", got)
	}
	if got := list("gateway=far&page_size=1"); ids(got) != "2far " || got.Total != 301 || strings.Join(got.Gateways, " ") != "far" {
		t.Errorf("of a gateway: %+v", got)
	}
	var others connectionList
	ask("GET", "/api/connections", b.other).Want(200).Into(&others)
	if ids(others) != "4far " {
		t.Errorf("another organisation: %+v", others)
	}
	ask("GET", "/api/connections?after=x", b.viewer).Want(400).Says("after must be the member next of the page before")
	ask("GET", "/api/connections/0000000000000002", b.viewer).Want(200).Says(`"gateway":"far"`, `"name":"prices"`, `"events":3`)
	ask("GET", "/api/connections/0000000000000002", b.other).Want(404)
	ask("GET", "/api/connections/nope", b.viewer).Want(404).Says("No gateway has an open connection with this id")
	ask("DELETE", "/api/connections/0000000000000002", b.other).Want(404)
	ask("DELETE", "/api/connections/0000000000000002", b.viewer).Want(403)
	ask("DELETE", "/api/connections/0000000000000002?code=1006", b.editor).Want(400).Says("code must be 1000")
	ask("DELETE", "/api/connections/0000000000000002?code=4403&close_reason=Too+loud", b.editor).Want(200).Says("Connection ended")
	if how := far.ended(); len(how) == 0 || how[0] != (connections.End{Code: 4403, Reason: "Too loud"}) || len(near.ended()) != 0 {
		t.Errorf("ended %+v and %+v", how, near.ended())
	}
	b.Call("GET", "/api/audit?object_kind=connection", b.admin, "").Want(200).Says(`"action":"ended"`, `"object_id":"0000000000000002"`, `"close_reason":"Too loud"`, `"gateway":"far"`)
}

// A gateway that serves and does not answer is named.
func TestGatewaysThatDoNotAnswerAreNamed(t *testing.T) {
	b := start(t)
	org, err := b.store.FirstOrg(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	near := &fakeGateway{b: b, name: "near", open: []connections.Connection{connectionAt(1, org, "k")}}
	near.run(b.Client)
	b.atRevision("0")
	b.Call("GET", "/api/gateway/bundle", gatewayToken, "", "X-Sluice-Gateway", "deaf").Want(200)
	wait.Until(t, "both gateways have reported", func() bool {
		return len(b.Call("GET", "/api/gateways", b.viewer, "").Object()["gateways"].([]any)) == 2
	})
	wait.Until(t, "the other one has answered", func() bool {
		var got connectionList
		b.Call("GET", "/api/connections", b.viewer, "").Want(200).Into(&got)
		return len(got.Connections) == 1 && strings.Join(got.Silent, " ") == "deaf"
	})
	b.Call("GET", "/api/connections/0000000000000009", b.viewer, "").Want(503).Says("Not all gateways have answered in time")
}

func TestAnswersOfGatewaysAreChecked(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/gateway/answers", b.editor, `{"question":"q","answer":{}}`).Want(403)
	b.Call("POST", "/api/gateway/answers", gatewayToken, `{"question":"","answer":{}}`).Want(400).Says("question and answer are required")
	b.Call("POST", "/api/gateway/answers", gatewayToken, `{"question":"q","answer":{},"more":1}`).Want(400)
	b.Call("POST", "/api/gateway/answers", gatewayToken, `{"question":"nobody","answer":{}}`).Want(200)
}
