package store

import (
	"slices"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// rotated is the session of a key h1 with these keys.
func rotated(keys ...definition.Credential) *definition.Session {
	s := &definition.Session{Alias: "it"}
	s.SetCredentials(keys)
	return s
}

func TestAKeyAndItsSuccessorsAreWrittenTogetherOrNotAtAll(t *testing.T) {
	s, url := fresh(t)
	ctx := t.Context()
	newKey(t, s, "one", "h1")
	newKey(t, s, "two", "taken")
	drop(t, s)
	rows := func() []string {
		t.Helper()
		return one[[]string](t, url, "select array_agg(key_hash || ' ' || successor_of order by key_hash) from keys")
	}

	clash := KeyChange{Hash: "h1", Session: rotated(definition.Credential{Hash: "taken"}), Successor: "taken"}
	if err := s.CommitKey(ctx, by("one"), clash); err == nil {
		t.Fatal("a hash that another organisation has was taken")
	}
	if got := rows(); !slices.Equal(got, []string{"h1 ", "taken "}) {
		t.Errorf("a change that failed left %q", got)
	}
	if waiting, _, err := s.Backlog(ctx); err != nil || waiting != 0 {
		t.Errorf("a change that failed left %d deliveries, %v", waiting, err)
	}

	first := KeyChange{Hash: "h1", Session: rotated(definition.Credential{Hash: "h1", Retires: 5}, definition.Credential{Hash: "h2"}), Successor: "h2"}
	if err := s.CommitKey(ctx, by("one"), first); err != nil {
		t.Fatal(err)
	}
	again := KeyChange{Hash: "h1", Session: rotated(definition.Credential{Hash: "h1", Retires: 5}, definition.Credential{Hash: "h3"}), Successor: "h3", Gone: []string{"h2"}}
	if err := s.CommitKey(ctx, by("one"), again); err != nil {
		t.Fatal(err)
	}
	if got := rows(); !slices.Equal(got, []string{"h1 ", "h3 h1", "taken "}) {
		t.Errorf("rows %q", got)
	}
	if session, err := s.SessionAnywhere(ctx, "h3"); err != nil || session.SuccessorOf() != "h1" {
		t.Errorf("%+v, %v", session, err)
	}
	list, total, err := s.ListKeys(ctx, "one", KeyFilter{}, Page{Max: 10})
	if err != nil || total != 1 || len(list) != 1 || list[0].KeyHash != "h1" {
		t.Errorf("listed %d of %d, %v", len(list), total, err)
	}
	if hashes, err := s.KeyHashes(ctx, "one", "", 10); err != nil || !slices.Equal(hashes, []string{"h1"}) {
		t.Errorf("hashes %q, %v", hashes, err)
	}
	delivered := map[string]string{}
	if _, _, err := s.Deliver(ctx, 10, func(all []Delivery) []error {
		for _, d := range all {
			delivered[d.Hash] = "gone"
			if d.Session != nil {
				delivered[d.Hash] = "for " + d.Session.SuccessorOf()
			}
		}
		return make([]error, len(all))
	}); err != nil || len(delivered) != 3 || delivered["h1"] != "for " || delivered["h2"] != "gone" || delivered["h3"] != "for h1" {
		t.Errorf("delivered %q, %v", delivered, err)
	}
}

func TestAChangeOfAKeyThatWasRotatedMeanwhileIsStale(t *testing.T) {
	s, _ := fresh(t)
	newKey(t, s, "one", "h1")
	found := rotated()
	two := []definition.Credential{{Hash: "h1", Retires: 5}, {Hash: "h2"}}
	if err := s.CommitKey(t.Context(), by("one"), KeyChange{Hash: "h1", Session: rotated(two...), Successor: "h2", Found: found}); err != nil {
		t.Fatal(err)
	}
	conflict(t, s.CommitKey(t.Context(), by("one"), KeyChange{Hash: "h1", Session: rotated(), Found: found}), Stale)
	two[0].Retires = 6
	conflict(t, s.CommitKey(t.Context(), by("one"), KeyChange{Hash: "h1", Session: rotated(), Found: rotated(two...)}), Stale)
	two[0].Retires = 5
	if err := s.CommitKey(t.Context(), by("one"), KeyChange{Hash: "h1", Session: rotated(two...), Found: rotated(two...)}); err != nil {
		t.Error(err)
	}
}

// drop forgets what waits for delivery.
func drop(t *testing.T, s *Store) {
	t.Helper()
	if _, _, err := s.Deliver(t.Context(), 100, func(all []Delivery) []error { return make([]error, len(all)) }); err != nil {
		t.Fatal(err)
	}
}
