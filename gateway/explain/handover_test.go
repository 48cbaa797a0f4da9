package explain

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/usage"
)

// takenFrom returns what there is to take, by key.
func takenFrom(h *Handover) map[string][]usage.Refusal {
	all := make(map[string][]usage.Refusal)
	h.Take(func(r usage.Refusal) { all[r.Key] = append(all[r.Key], r) })
	return all
}

func TestTheNewestRefusalsOfEachKeyAreHandedOver(t *testing.T) {
	h := NewHandover()
	for n := range 3 * usage.RefusalsOfKey {
		for _, key := range []string{"3fa9c1d2e4b5aaaa", "77c0ffffffffffff", ""} {
			ex := refusedExchange(t, idOf(n))
			if key == "77c0ffffffffffff" && n > 4 {
				continue
			}
			ex.KeyHash, ex.KeyName = key, key[:min(len(key), 12)]
			h.Add(ex)
		}
	}
	got := takenFrom(h)
	for key, want := range map[string]int{"3fa9c1d2e4b5aaaa": usage.RefusalsOfKey, "77c0ffffffffffff": 5, "": usage.RefusalsOfKey} {
		if len(got[key]) != want {
			t.Errorf("%d refusals of %q, want %d", len(got[key]), key, want)
		}
	}
	one := got["77c0ffffffffffff"][0]
	if one.API != "orders" || one.Org != "o" || one.APIName != "Orders" || one.Version != "v2" || one.Reason != "quota_exceeded" || one.Status != 403 ||
		one.KeyName != "77c0ffffffff" || one.Policy != "demo" || one.Path != "/orders/7" || one.Client != "203.0.113.9" || len(one.Limits) != 2 || one.Stage != "limit" {
		t.Errorf("%+v", one)
	}
	if again := takenFrom(h); len(again) != 0 || h.Lost() != 0 {
		t.Errorf("taken twice: %v; %d lost", again, h.Lost())
	}
}

func TestTheOldestOfAKeyMakeRoom(t *testing.T) {
	h := NewHandover()
	for n := range 5*usage.RefusalsOfKey + 3 {
		ex := refusedExchange(t, idOf(n))
		ex.KeyHash, ex.KeyName = "k", "k"
		h.Add(ex)
	}
	kept := make(map[string]bool)
	for _, r := range takenFrom(h)["k"] {
		kept[r.ID] = true
	}
	for n := range 5*usage.RefusalsOfKey + 3 {
		if want := n >= 4*usage.RefusalsOfKey+3; kept[idOf(n)] != want {
			t.Errorf("refusal %d is kept: %v", n, kept[idOf(n)])
		}
	}
}

func TestAFloodOfKeysIsBoundedAndCounted(t *testing.T) {
	h := &Handover{room: 8}
	const calls = 5000
	for n := range calls {
		ex := refusedExchange(t, idOf(n))
		ex.KeyHash, ex.KeyName = fmt.Sprint("key", n), "key"
		h.Add(ex)
	}
	if got := len(takenFrom(h)); got != 8*shards || h.Lost() != calls-8*shards {
		t.Errorf("%d are kept, %d are lost", got, h.Lost())
	}
}

func TestAHandoverHasNoSecretsAndOnlyWhatCanBeStored(t *testing.T) {
	h := NewHandover()
	ex := refusedExchange(t, idOf(1))
	ex.KeyHash, ex.KeyName = "my secret", "7c1f"
	ex.Call.Path = []byte("/a\x00b\xff")
	h.Add(ex)
	nowhere := refusedExchange(t, idOf(2))
	nowhere.API = nil
	h.Add(nowhere)
	all := takenFrom(h)
	if len(all) != 1 {
		t.Fatalf("%v", all)
	}
	for key, list := range all {
		if strings.Contains(fmt.Sprint(list), "secret") || strings.Contains(fmt.Sprint(list), "in-the-") || len(key) != 64 || list[0].Path != "/ab" {
			t.Errorf("%q: %+v", key, list)
		}
		b := usage.Batch{Gateway: "g", Boot: "b", Sequence: 1, Refusals: list}
		if _, refused, err := b.Sift(); err != nil || refused.Refused > 0 {
			t.Errorf("%v %+v", err, refused)
		}
	}
}

func TestTheLargestRefusalCanBeStored(t *testing.T) {
	h, ex, long := NewHandover(), refusedExchange(t, idOf(1)), strings.Repeat("é", 5000)
	ex.API.Definition = &definition.API{ID: strings.Repeat("i", usage.MaxText), Name: long, OrgID: "o"}
	ex.Version.Name, ex.Revision, ex.KeyName, ex.Grant.Policy = long, long, long, long
	ex.Call.Method, ex.Call.Path = []byte(long), []byte(long)
	ex.Rejection = pipeline.NewGraphQLRejection(pipeline.ReasonGraphQLInvalid, 400, long, []byte(long))
	h.Add(ex)
	b := usage.Batch{Gateway: "g", Boot: "b", Sequence: 1}
	h.Take(func(r usage.Refusal) { b.Refusals = append(b.Refusals, r) })
	if _, refused, err := b.Sift(); err != nil || refused.Refused > 0 || len(b.Refusals) != 1 {
		t.Errorf("%v %+v", err, refused)
	}
}

func TestHandingOverDoesNotAllocateOnceItIsWarm(t *testing.T) {
	h := NewHandover()
	exs := make([]*pipeline.Exchange, 64)
	for n := range exs {
		exs[n] = refusedExchange(t, idOf(n))
		exs[n].KeyHash, exs[n].KeyName = fmt.Sprint("key", n), "key"
	}
	add := func() {
		for _, ex := range exs {
			h.Add(ex)
		}
	}
	for range 2 { // both tables of each shard reach their size
		for range usage.RefusalsOfKey {
			add()
		}
		h.Take(func(usage.Refusal) {})
	}
	for range usage.RefusalsOfKey {
		add()
	}
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRefusalsAreTakenWhileOthersCome(t *testing.T) {
	h := NewHandover()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			ex := refusedExchange(t, idOf(g))
			ex.KeyHash, ex.KeyName = fmt.Sprint("key", g), "key"
			for range 500 {
				h.Add(ex)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for {
		for key, list := range takenFrom(h) {
			if len(list) > usage.RefusalsOfKey || key == "" {
				t.Errorf("%d of %q at once", len(list), key)
			}
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
