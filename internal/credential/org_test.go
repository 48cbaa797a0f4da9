package credential

import "testing"

// Where keys are stored in clear a token is its own identity: one that is that of
// an organisation would pass as its key.
func TestIdentitiesOfOrganisationsAreNoKeys(t *testing.T) {
	identity := OrgIdentity("acme")
	if !IsOrg(identity) || OrgOf(identity) != "acme" || IsOrg("acme") || OrgOf("acme") != "" {
		t.Errorf("%q", identity)
	}
	for _, prefix := range []string{"", DefaultPrefix, "org:"} {
		if Check(prefix, []byte(identity)) {
			t.Errorf("with prefix %q it may be a key", prefix)
		}
	}
	for _, token := range []string{"org", "organisation", "xorg:acme"} {
		if !Check("", []byte(token)) {
			t.Errorf("%q may be no key", token)
		}
	}
}
