package counter

// Naming builds the names of counters. It is the only place that does: gateways
// that share a store find the same counter only if all of them name it alike.
// The zero value names counters for one process or a store of one node.
type Naming struct {
	// Tagged wraps the subject in braces, which a cluster reads as "everything
	// with this subject lives on one node": a call's rate and quota are then
	// counted by one command. It changes every name, so a store that becomes a
	// cluster starts with fresh counters.
	Tagged bool
}

// Quota names the quota of a subject, "quota-[scope-]subject": a hashed key or
// an organisation; scope, empty for the key-wide quota, sets apart the limits
// that one subject has for several APIs.
func (n Naming) Quota(scope, subject string) string {
	return "quota-" + dashed(scope) + n.tag(subject)
}

// Rate names the rate of a subject, "rate-[scope-]subject[-stamp]". The stamp is
// the subject's last update, so that an updated key starts afresh; empty for a
// rate that an update does not touch.
func (n Naming) Rate(scope, subject, stamp string) string {
	name := "rate-" + dashed(scope) + n.tag(subject)
	if stamp == "" {
		return name
	}
	return name + "-" + stamp
}

// APIRate names the one rate that all callers of an API share, "rate-api-id".
func (n Naming) APIRate(api string) string { return "rate-api-" + n.tag(api) }

func (n Naming) tag(subject string) string {
	if n.Tagged {
		return "{" + subject + "}"
	}
	return subject
}

func dashed(scope string) string {
	if scope == "" {
		return ""
	}
	return scope + "-"
}
