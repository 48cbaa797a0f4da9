package pipeline

import (
	"testing"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// sending returns an exchange for a request with those header lines.
func sending(lines string) *Exchange {
	call := new(wire.Call)
	call.SetLines([]byte(lines))
	return For(call)
}

func TestAnotherAPIIsSentTheLinesThatGoUpstream(t *testing.T) {
	for _, c := range []struct {
		lines string
		drop  []string
		extra string
		want  string
	}{
		{"A: 1\r\nB: 2\r\n", nil, "", "A: 1\r\nB: 2\r\n"},
		{"A: 1\r\nB: 2\r\n", []string{"A"}, "C: 3\r\n", "B: 2\r\nC: 3\r\n"},
		{"X_own: 1\r\nx-OWN: 2\r\n", []string{"X-Own"}, "X-Own: 3\r\n", "X-Own: 3\r\n"},
		{"Connection: x-own, close\r\nX-Own: 1\r\nA: 1\r\n", nil, "X-Own: 3\r\n", "A: 1\r\nX-Own: 3\r\n"},
		{"Connection: keep-alive\r\nA: 1\r\n", nil, "", "A: 1\r\n"},
		{"Connection: Upgrade, A\r\nUpgrade: websocket\r\nA: 1\r\n", nil, "A: 2\r\n", "Upgrade: websocket\r\nConnection: Upgrade\r\nA: 2\r\n"},
		{"Connection: upgrade\r\nUpgrade: websocket\r\n", []string{"Upgrade"}, "", "Connection: Upgrade\r\n"},
	} {
		ex := sending(c.lines)
		ex.Outgoing.Drop, ex.Outgoing.Extra = c.drop, []byte(c.extra)
		if got := string(ex.NewChild([]byte("/x")).Call.Lines); got != c.want {
			t.Errorf("%q without %q and with %q: %q, want %q", c.lines, c.drop, c.extra, got, c.want)
		}
		ex.Release()
	}
}

func TestGoingOnToAnotherAPIDoesNotAllocate(t *testing.T) {
	call, uri, drop := new(wire.Call), []byte("/x?y=z"), []string{"X-Own"}
	call.SetLines([]byte("Connection: keep-alive, a\r\nX-Own: 1\r\nA: 1\r\nB: 2\r\n"))
	if n := testing.AllocsPerRun(1000, func() {
		ex := For(call)
		ex.Outgoing.Drop, ex.Outgoing.Extra = drop, append(ex.Outgoing.Extra, "X-Own: 2\r\n"...)
		ex.NewChild(uri).NewChild(uri)
		ex.Release()
	}); n != 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}
