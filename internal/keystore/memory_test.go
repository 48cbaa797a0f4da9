package keystore_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// live returns the bytes of the heap, and those of them that a collection has to
// look through.
func live() (held, scanned int64) {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/scan/heap:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()), int64(sample[1].Value.Uint64())
}

// Keys in memory cost a collection of garbage nothing, and give back what they
// took.
func TestManySessionsAreSmallAndNotLookedThrough(t *testing.T) {
	const n = 50_000
	session := &definition.Session{OrgID: "53ac07777cbb8c2d530000", Alias: "someone@example.org", ApplyPolicies: []string{"gold"}, LastUpdated: "1795300000"}
	hash := func(i int) string { return fmt.Sprintf("%064x", i) }
	heldBefore, scannedBefore := live()
	m := keystore.NewMemory()
	for round := range 3 { // later ones replace
		for i := range n {
			session.QuotaRenews = int64(round)
			if err := m.Put(t.Context(), hash(i), session); err != nil {
				t.Fatal(err)
			}
		}
	}
	held, scanned := live()
	t.Logf("%d bytes for each session, %d of them looked through", (held-heldBefore)/n, (scanned-scannedBefore)/n)
	if per := (held - heldBefore) / n; per > 450 {
		t.Errorf("%d bytes for each session", per)
	}
	if per := (scanned - scannedBefore) / n; per > 20 {
		t.Errorf("%d bytes of each session are looked through", per)
	}
	for i := range n {
		if err := m.Delete(t.Context(), hash(i)); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := live(); left-heldBefore > (held-heldBefore)/20 {
		t.Errorf("%d of %d bytes are held when all keys are gone", left-heldBefore, held-heldBefore)
	}
	runtime.KeepAlive(m)
}

// What a caller does with a session does not reach the store.
func TestSessionsInMemoryAreNobodyElses(t *testing.T) {
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
