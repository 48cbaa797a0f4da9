package counter

// Naming builds the names of all counters: gateways that share a store find the same
// counter only if all of them use the same name. The zero value
// names counters for one process or a store of one node.
type Naming struct {
	// Tagged wraps the subject in braces, the hash tag of a cluster: everything
	// with one subject is on one node, and a call's rate and quota are counted by
	// one command. It changes every name, so a store that becomes a cluster starts
	// with fresh counters.
	Tagged bool
}

// Quota names the quota of a subject, "quota-[scope-]subject". The subject is a
// hashed key or an organisation. The scope, empty for the key-wide quota,
// separates the limits that one subject has for several APIs.
func (n Naming) Quota(scope, subject string) string { return n.name("quota-", scope, subject, "") }

// Rate names the rate of a subject, "rate-[scope-]subject[-stamp]". The stamp is
// the subject's last update, so that an updated key starts afresh; empty for a
// rate that an update does not affect.
func (n Naming) Rate(scope, subject, stamp string) string {
	return n.name("rate-", scope, subject, stamp)
}

// APIRate names the one rate that all callers of an API share, "rate-api-id".
func (n Naming) APIRate(api string) string { return n.name("rate-api-", "", api, "") }

// name returns "kind[scope-]subject[-stamp]".
func (n Naming) name(kind, scope, subject, stamp string) string {
	afterScope, open, end, beforeStamp := "", "", "", ""
	if scope != "" {
		afterScope = "-"
	}
	if n.Tagged {
		open, end = "{", "}"
	}
	if stamp != "" {
		beforeStamp = "-"
	}
	return kind + scope + afterScope + open + subject + end + beforeStamp + stamp
}
