package pipeline

import (
	"slices"
	"testing"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

func TestNamesThatAreAlsoDroppedLeaveTheSharedListAlone(t *testing.T) {
	shared := append(make([]string, 0, 8), "Authorization")
	for range 3 {
		ex := For(&wire.Call{})
		ex.Outgoing.Drop = shared
		ex.Outgoing.AlsoDrop("Content-Type")
		ex.Outgoing.AlsoDrop("Accept")
		if want := []string{"Authorization", "Content-Type", "Accept"}; !slices.Equal(ex.Outgoing.Drop, want) {
			t.Errorf("%q, want %q", ex.Outgoing.Drop, want)
		}
		if rest := shared[:3]; rest[1] != "" || rest[2] != "" {
			t.Errorf("the shared list became %q", rest)
		}
		ex.Release()
	}
	ex := For(&wire.Call{})
	if len(ex.Outgoing.Drop) > 0 || ex.Outgoing.HasBody || ex.Token != nil {
		t.Error("an exchange from the pool is not empty")
	}
}

func TestDroppingDoesNotAllocate(t *testing.T) {
	call, shared := &wire.Call{}, []string{"Authorization"}
	if n := testing.AllocsPerRun(1000, func() {
		ex := For(call)
		ex.Outgoing.Drop = shared
		ex.Outgoing.AlsoDrop("Content-Type")
		ex.Release()
	}); n != 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}

func TestRewrittenLinesGoWhenTheirNameIsDropped(t *testing.T) {
	ex := For(&wire.Call{Query: []byte("a=1")})
	defer ex.Release()
	out := &ex.Outgoing
	out.Extra = append(out.Extra, "X-First: 1\r\n"...)
	out.Rewrite("Cookie")
	out.Extra = append(out.Extra, "Cookie: a=1\r\nCookie: b=2\r\nCookie2: c\r\n"...)
	out.AlsoDrop("X-Other")
	if want := "X-First: 1\r\nCookie: a=1\r\nCookie: b=2\r\nCookie2: c\r\n"; string(out.Extra) != want {
		t.Errorf("%q, want %q", out.Extra, want)
	}
	out.AlsoDrop("Cookie")
	if want := "X-First: 1\r\nCookie2: c\r\n"; string(out.Extra) != want || !slices.Contains(out.Drop, "Cookie") {
		t.Errorf("%q, want %q; dropped %q", out.Extra, want, out.Drop)
	}
}

func TestTheQueryIsTheClientsUntilAStageSetsAnother(t *testing.T) {
	ex := For(&wire.Call{Query: []byte("a=1")})
	defer ex.Release()
	if got := string(ex.Query()); got != "a=1" {
		t.Errorf("%q", got)
	}
	ex.Outgoing.HasQuery = true
	if got := ex.Query(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
