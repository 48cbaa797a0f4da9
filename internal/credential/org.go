package credential

import "strings"

// orgPrefix begins the identities of organisations. No hash begins with it, and no key
// may begin with it.
const orgPrefix = "org:"

// OrgIdentity returns the identity under which the session of an organisation is
// stored, in the same store as those of keys.
func OrgIdentity(org string) string { return orgPrefix + org }

// IsOrg reports whether an identity is that of an organisation.
func IsOrg(identity string) bool { return strings.HasPrefix(identity, orgPrefix) }

// OrgOf returns the organisation of an identity, or "".
func OrgOf(identity string) string {
	org, ok := strings.CutPrefix(identity, orgPrefix)
	if !ok {
		return ""
	}
	return org
}
