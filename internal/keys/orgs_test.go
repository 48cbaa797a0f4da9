package keys_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

const orgLimits = `{"org_id": "acme", "quota_max": 10, "quota_renewal_calendar": "month", "quota_renewal_zone": "UTC"}`

// Sessions of organisations are kept among those of keys, whether keys are stored
// as hashes or in clear, and never found as keys.
func TestSessionsOfOrganisations(t *testing.T) {
	for _, algorithm := range []credential.Algorithm{credential.SHA256, credential.None} {
		d := open(t)
		d.Options.Hasher.Algorithm = algorithm
		ref := keys.Ref{ID: "org:acme"}
		if _, _, err := d.Get(t.Context(), ref); !errors.Is(err, keys.ErrNotFound) {
			t.Fatalf("before it is made: %v", err)
		}
		d.create("org:acme", orgLimits)
		key := d.create("", `{"org_id": "acme", "access_rights": {"a": {}}}`)
		got := d.get("org:acme")
		if got.QuotaRemaining != 10 || got.QuotaRenews != 1_701_388_800 { // the first of December 2023
			t.Errorf("%d left until %d", got.QuotaRemaining, got.QuotaRenews)
		}
		found, err := d.Find(t.Context(), keys.Filter{})
		if want := []string{cmpOr(key.Hash, key.Key)}; err != nil || !slices.Equal(found, want) {
			t.Errorf("keys %q, %v, want %q", found, err, want)
		}
		if found, err = d.Find(t.Context(), keys.Filter{Prefix: "org:"}); err != nil || !slices.Equal(found, []string{"org:acme"}) {
			t.Errorf("organisations %q, %v", found, err)
		}
		made := got.DateCreated
		d.update("org:acme", `{"org_id": "acme", "rate": 1, "per": 1}`, true)
		if got := d.get("org:acme"); got.Rate != 1 || got.DateCreated != made {
			t.Errorf("changed: %+v", got)
		}
		d.create("org:acme", orgLimits)
		if _, err := d.Delete(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
}

func cmpOr(first, second string) string {
	if first != "" {
		return first
	}
	return second
}

func TestOnlyLimitsMayBeThoseOfAnOrganisation(t *testing.T) {
	d := open(t)
	for _, c := range []struct{ id, session string }{
		{"org:other", orgLimits},
		{"org:", `{}`},
		{"org:a/b", `{"org_id": "a/b"}`},
		{"org:acme", `{"org_id": "acme", "access_rights": {"a": {}}}`},
		{"org:acme", `{"org_id": "acme", "apply_policies": ["gold"]}`},
		{"org:acme", `{"org_id": "acme", "basic_auth_data": {"password": "secret"}}`},
	} {
		if _, err := d.Create(t.Context(), c.id, parse[definition.Session](t, c.session), false); err == nil {
			t.Errorf("%s is made of %s", c.id, c.session)
		}
	}
	d.create("org:acme", orgLimits)
	if _, err := d.SetPolicies(t.Context(), keys.Ref{ID: "org:acme"}, []string{"gold"}); err == nil {
		t.Error("an organisation carries policies")
	}
}

// A counter of the calendar ends a moment before the calendar's period does; what
// people are told is the calendar's.
func TestAQuotaOfTheCalendarIsShownToRenewWhenTheCalendarSays(t *testing.T) {
	d := open(t)
	issued := d.create("", `{"org_id": "o", "quota_max": 5, "quota_renewal_calendar": "day", "access_rights": {"a": {}}}`)
	const midnight = 1_700_006_400
	limit := []counter.Limit{{Key: counter.Naming{}.Quota("", issued.Hash), Kind: counter.Quota, Max: 5, Period: (midnight-1_700_000_000)*time.Second - 20*time.Millisecond}}
	if _, err := d.counts.Take(t.Context(), limit, 1, make([]counter.Count, 1)); err != nil {
		t.Fatal(err)
	}
	if got := d.get(issued.Key); got.QuotaRenews != midnight || got.QuotaRemaining != 4 {
		t.Errorf("%d left until %d, want 4 until %d", got.QuotaRemaining, got.QuotaRenews, midnight)
	}
}
