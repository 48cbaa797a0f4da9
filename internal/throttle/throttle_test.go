package throttle

import (
	"fmt"
	"net"
	"testing"
	"time"
)

func TestGuardForgetsWithTimeAndKeepsABound(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := New(2, func() time.Time { return now })
	status := func(ip string) int {
		if g.Failed(net.ParseIP(ip)) > 0 {
			return 429
		}
		return 401
	}
	for i, want := range []int{401, 401, 429, 429} {
		if got := status("192.0.2.1"); got != want {
			t.Errorf("attempt %d: %d, want %d", i, got, want)
		}
	}
	if status("192.0.2.2") != 401 {
		t.Error("another address pays for the first")
	}
	now = now.Add(31 * time.Second)
	if status("192.0.2.1") != 401 || status("192.0.2.1") != 429 {
		t.Error("half a minute gives back one of two attempts")
	}
	status("2001:db8::1")
	status("2001:db8::2")
	if status("2001:db8::3") != 429 {
		t.Error("one network of IPv6 counts as many addresses")
	}
	for i := range 3 * maxAddresses {
		status(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
	}
	if len(g.fails) > maxAddresses {
		t.Errorf("%d addresses are kept", len(g.fails))
	}
}
