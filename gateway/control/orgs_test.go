package control

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

const orgLimits = `{"quota_max":10,"quota_renewal_rate":60,"rate":5,"per":1}`

func TestTheLifeOfAnOrganisationsSession(t *testing.T) {
	b := onFiles(t)
	b.want("POST", "/svc/org/keys/acme", orgLimits, 404, failed("No such organisation found in Active API list"))
	b.write("weather.json", definitionOf("weather", `"org_id":"acme",`))
	b.reload()
	b.want("GET", "/svc/org/keys", "", 200, `{"keys":[]}`)
	b.want("GET", "/svc/org/keys/acme", "", 404, failed("Org not found"))
	b.want("POST", "/svc/org/keys/acme", orgLimits, 200, done("acme", "added"))
	b.want("GET", "/svc/org/keys", "", 200, `{"keys":["acme"]}`)

	left := func() int64 {
		t.Helper()
		got := b.call("GET", "/svc/org/keys/acme", "")
		session := decoded[definition.Session](t, got)
		if got.status != 200 || session.OrgID != "acme" || session.QuotaMax != 10 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return session.QuotaRemaining
	}
	b.use("org:acme", 4)
	if n := left(); n != 6 {
		t.Errorf("%d left, want 6", n)
	}
	b.want("PUT", "/svc/org/keys/acme", orgLimits, 200, done("acme", "modified"))
	if n := left(); n != 6 {
		t.Errorf("%d left after a change, want 6", n)
	}
	b.want("PUT", "/svc/org/keys/acme?reset_quota=1", orgLimits, 200, done("acme", "modified"))
	if n := left(); n != 10 {
		t.Errorf("%d left after a reset, want 10", n)
	}
	b.want("DELETE", "/svc/org/keys/acme", "", 200, done("acme", "deleted"))
	b.want("DELETE", "/svc/org/keys/acme", "", 404, failed("Org not found"))
	b.want("PUT", "/svc/org/keys/acme", orgLimits, 200, done("acme", "modified"))
	if n := left(); n != 10 {
		t.Errorf("%d left of a new one, want 10", n)
	}
}

func TestLimitsThatAreNotEnforcedAreWarnedOf(t *testing.T) {
	b := onFiles(t)
	b.api.deps.OrgLimits = false
	b.write("weather.json", definitionOf("weather", `"org_id":"acme",`))
	b.reload()
	for _, method := range []string{"POST", "PUT"} {
		if got := b.call(method, "/svc/org/keys/acme", orgLimits); got.status != 200 || !strings.Contains(got.body, `"warnings":[`) || !strings.Contains(got.body, "enforce_org_quotas is off") {
			t.Errorf("%s: %d %s", method, got.status, got.body)
		}
	}
}

// An organisation is none of the keys, and no key can pass for one.
func TestOrganisationsAreNotAmongTheKeys(t *testing.T) {
	b := onFiles(t)
	b.write("weather.json", definitionOf("weather", `"org_id":"acme",`))
	b.reload()
	b.want("POST", "/svc/org/keys/acme", orgLimits, 200, done("acme", "added"))
	b.want("GET", "/svc/keys", "", 200, `{"keys":[]}`)
	if got := b.call("POST", "/svc/keys/org:acme", aKey); got.status != 400 || !strings.Contains(got.body, "access_rights") {
		t.Errorf("a key in its place: %d %s", got.status, got.body)
	}
}

func TestSessionsThatAreNotThoseOfAnOrganisationAreRefused(t *testing.T) {
	b := onFiles(t)
	b.write("weather.json", definitionOf("weather", `"org_id":"acme",`))
	b.reload()
	for _, c := range []struct{ path, body, says string }{
		{"acme", `{`, "Request malformed"},
		{"acme", `{"access_rights":{"weather":{}}}`, "access_rights: are those of keys"},
		{"acme", `{"apply_policies":["gold"]}`, "apply_policies: are those of keys"},
		{"acme", `{"basic_auth_data":{"password":"secret"}}`, "basic_auth_data"},
		{"acme", `{"org_id":"other"}`, "org_id in the session does not match"},
		{"acme", `{"quota_renewal_calendar":"era"}`, "quota_renewal_calendar: must be"},
		{"acme?reset_quota=maybe", `{}`, "reset_quota"},
		{"acme?reset=1", `{}`, "Unknown query parameter"},
	} {
		if got := b.call("POST", "/svc/org/keys/"+c.path, c.body); got.status != 400 || !strings.Contains(got.body, c.says) {
			t.Errorf("%s %s: %d %s", c.path, c.body, got.status, got.body)
		}
	}
	b.want("GET", "/svc/org/keys", "", 200, `{"keys":[]}`)
}
