package gateway_test

import (
	"testing"

	"github.com/sluicegate/sluice/gateway"
)

// challenges answers one token.
type challenges struct{ hosts chan string }

func (c challenges) Answer(host, token []byte) []byte {
	c.hosts <- string(host)
	if string(token) != "token" {
		return nil
	}
	return []byte("token.print")
}

// Other requests under the path of challenges are for APIs.
func TestChallengesAreAnsweredBeforeAPIs(t *testing.T) {
	asked := challenges{make(chan string, 10)}
	g, addr := serve(t, func(d *gateway.Deps) { d.Challenges = asked })
	root := within(t, "o", "root", named(t, "up"), open)
	root.Proxy.ListenPath = "/"
	g.Apply(bundle("1", root))
	for path, want := range map[string]string{
		"/.well-known/acme-challenge/token": "token.print",
		"/.well-known/acme-challenge/other": "up GET /.well-known/acme-challenge/other",
		"/.well-known/other":                "up GET /.well-known/other",
	} {
		if code, _, body := ask(t, addr, path); code != 200 || body != want {
			t.Errorf("%s: %d %q, want %q", path, code, body, want)
		}
	}
	if len(asked.hosts) != 2 {
		t.Fatalf("asked %d times, want twice", len(asked.hosts))
	}
	if host := <-asked.hosts; host != addr {
		t.Errorf("asked for the host %q, want %s", host, addr)
	}
}
