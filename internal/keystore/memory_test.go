package keystore_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestManySessionsAreSmallAndFreeTheirMemory(t *testing.T) {
	const n = 50_000
	session := &definition.Session{OrgID: "53ac07777cbb8c2d530000", Alias: "someone@example.org", ApplyPolicies: []string{"gold"}, LastUpdated: "1795300000"}
	hash := func(i int) string { return fmt.Sprintf("%064x", i) }
	before := heap()
	m := keystore.NewMemory()
	for round := range 3 { // later ones replace
		for i := range n {
			session.QuotaRenews = int64(round)
			if err := m.Put(t.Context(), hash(i), session); err != nil {
				t.Fatal(err)
			}
		}
	}
	held := heap() - before
	t.Logf("%d bytes per session", held/n)
	if held/n > 450 {
		t.Error("want at most 450")
	}
	for i := range n {
		if err := m.Delete(t.Context(), hash(i)); err != nil {
			t.Fatal(err)
		}
	}
	if left := heap() - before; left > held/20 {
		t.Errorf("%d of %d bytes are held after all keys were deleted", left, held)
	}
	runtime.KeepAlive(m)
}

func TestChangesOfASessionDoNotReachTheStore(t *testing.T) {
	m := keystore.NewMemory()
	session := &definition.Session{Tags: []string{"a"}}
	_ = m.Put(t.Context(), "key", session)
	session.Tags[0] = "b"
	for range 2 {
		got, err := m.Get(t.Context(), "key")
		if err != nil || got.Tags[0] != "a" {
			t.Fatalf("%+v, %v", got, err)
		}
		got.Tags[0] = "c"
	}
}
