package ways

import (
	"crypto/tls"
	"testing"

	"github.com/sluicegate/sluice/loadtest/gate"
)

// Every way has an API, and what it is compared with speaks TLS if it does.
func TestWaysHaveAnAPIAndAYardstickOfTheirKind(t *testing.T) {
	s := &site{Gate: new(gate.Gate), plain: new(tls.Config), shown: new(tls.Config)}
	apis, names := definitions("client.crt"), make(map[string]bool)
	for _, w := range s.ways() {
		if _, ok := apis[w.api]; !ok || names[w.name] {
			t.Errorf("%s: API %q, name seen before: %v", w.name, w.api, names[w.name])
		}
		names[w.name] = true
		if over := s.yardstick(w.tls).tls; (over != nil) != (w.tls != nil) {
			t.Errorf("%s is compared across TLS", w.name)
		}
	}
}

func TestVerdictsHoldTheBound(t *testing.T) {
	for _, c := range []struct {
		bound, ratio float64
		want         string
	}{{0, 2, "noise |"}, {bound, 1.03, "1.03 | met"}, {bound, 1.031, "1.03 | **above**"}, {jwtBound, 1.09, "1.10 | met"}} {
		if got := verdict(c.bound, c.ratio); got != c.want {
			t.Errorf("%v of %v: %q, want %q", c.ratio, c.bound, got, c.want)
		}
	}
}
