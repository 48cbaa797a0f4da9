package usage

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/usage"
)

// refused returns the record of a refusal.
func refused(n int, key, api string, at time.Time) usage.Refusal {
	return usage.Refusal{ID: fmt.Sprint("r", n), At: at, Org: "one", API: api, Key: key, Stage: "limit", Status: 429, Reason: "rate_limit", Path: "/a"}
}

func listed(t *testing.T, st *store.Store, change func(*RefusalQuery)) ([]Refusal, int64) {
	t.Helper()
	q := &RefusalQuery{Org: "one", Since: time.Now().Add(-100 * 24 * time.Hour), Until: time.Now().Add(time.Hour), Page: store.Page{Max: 500}}
	change(q)
	list, total, err := Refusals(t.Context(), st, q)
	if err != nil {
		t.Fatal(err)
	}
	return list, total
}

func TestTheNewestRefusalsOfEachKeyStay(t *testing.T) {
	st, _ := fresh(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	n := 0
	for sequence := range int64(3) {
		b := &usage.Batch{Gateway: "gw", Boot: "b", Sequence: sequence + 1}
		for range 60 {
			at := now.Add(time.Duration(n-1000) * time.Second)
			b.Refusals = append(b.Refusals, refused(n, "busy", "a", at), refused(n+1000, "", "a", at), refused(n+2000, "", "b", at))
			n++
		}
		b.Refusals = append(b.Refusals, refused(9000+int(sequence), "quiet", "a", now.Add(time.Duration(sequence)*time.Hour)))
		for range 2 { // a batch that comes again
			if _, err := Add(t.Context(), st, b, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	for key, want := range map[string]int64{"busy": refusalsOfKey, "quiet": 3, "": 2 * refusalsOfKey, "none": 0} {
		list, total := listed(t, st, func(q *RefusalQuery) { q.Key = &key })
		if total != want || int64(len(list)) != want {
			t.Errorf("%d records of %q, want %d", total, key, want)
		}
		for i := range list {
			if list[i].At.After(now) || list[i].Gateway != "gw" || i > 0 && list[i].At.After(list[i-1].At) {
				t.Errorf("record %d of %q: %+v", i, key, list[i])
			}
		}
		if key == "busy" && (list[0].ID != "r179" || list[len(list)-1].ID != "r80") {
			t.Errorf("from %s to %s", list[0].ID, list[len(list)-1].ID)
		}
	}
	if _, total := listed(t, st, func(q *RefusalQuery) { q.API = "b" }); total != refusalsOfKey {
		t.Errorf("%d of API b", total)
	}
	if _, total := listed(t, st, func(q *RefusalQuery) { q.Reason = "other" }); total != 0 {
		t.Errorf("%d of another reason", total)
	}
	if _, total := listed(t, st, func(q *RefusalQuery) { q.Org = "two" }); total != 0 {
		t.Errorf("%d of another organisation", total)
	}
	if page, total := listed(t, st, func(q *RefusalQuery) { q.Page = store.Page{Skip: 300, Max: 10} }); len(page) != 3 || total != 303 {
		t.Errorf("%d on the last page of %d", len(page), total)
	}
	if r, err := RefusalByID(t.Context(), st, "one", "r179"); err != nil || r.Key != "busy" || r.Reason != "rate_limit" {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := RefusalByID(t.Context(), st, "two", "r179"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another organisation: %v", err)
	}
}

func TestOldRefusalsAreForgotten(t *testing.T) {
	st, _ := fresh(t)
	now := time.Now()
	b := &usage.Batch{Gateway: "gw", Boot: "b", Sequence: 1, Refusals: []usage.Refusal{
		refused(1, "k", "a", now.Add(-8*24*time.Hour)), refused(2, "k", "a", now.Add(-6*24*time.Hour)),
	}}
	if _, err := Add(t.Context(), st, b, now); err != nil {
		t.Fatal(err)
	}
	kept := long
	kept.Refusals = 7 * 24 * time.Hour
	if _, err := Keep(t.Context(), st, now, kept); err != nil {
		t.Fatal(err)
	}
	if list, _ := listed(t, st, func(*RefusalQuery) {}); len(list) != 1 || list[0].ID != "r2" {
		t.Errorf("%+v", list)
	}
}

// TestGatewaysHandOverRefusalsOfTheSameKeysAtOnce has the transactions trim the same keys.
func TestGatewaysHandOverRefusalsOfTheSameKeysAtOnce(t *testing.T) {
	st, _ := fresh(t)
	now := time.Now()
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			for sequence := range int64(10) {
				b := &usage.Batch{Gateway: fmt.Sprint("gw", g), Boot: "b", Sequence: sequence + 1}
				for k := range 10 {
					for i := range usage.RefusalsOfKey {
						b.Refusals = append(b.Refusals, refused(i, fmt.Sprint("key", (k+g)%10), "a", now.Add(-time.Duration(i)*time.Second)))
					}
				}
				if _, err := Add(t.Context(), st, b, now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	last := &usage.Batch{Gateway: "gw", Boot: "last", Sequence: 1}
	for k := range 10 {
		last.Refusals = append(last.Refusals, refused(1, fmt.Sprint("key", k), "a", now))
	}
	if _, err := Add(t.Context(), st, last, now); err != nil {
		t.Fatal(err)
	}
	if _, total := listed(t, st, func(*RefusalQuery) {}); total != 10*refusalsOfKey {
		t.Errorf("%d records are left, want %d", total, 10*refusalsOfKey)
	}
}
