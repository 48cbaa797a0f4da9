package counter

import "github.com/sluicegate/sluice/internal/counter/texts"

// Naming builds the names of counters. It is the only place that does: gateways
// that share a store find the same counter only if all of them name it alike.
// The zero value names counters for one process or a store of one node.
type Naming struct {
	// Tagged wraps the subject in braces, which a cluster reads as "everything
	// with this subject lives on one node": a call's rate and quota are then
	// counted by one command. It changes every name, so a store that becomes a
	// cluster starts with fresh counters.
	Tagged bool

	// In is where names are put that are forgotten soon; nil: each for itself.
	In *texts.Block
}

// Quota names the quota of a subject, "quota-[scope-]subject": a hashed key or
// an organisation; scope, empty for the key-wide quota, sets apart the limits
// that one subject has for several APIs.
func (n Naming) Quota(scope, subject string) string { return n.name("quota-", scope, subject, "") }

// Rate names the rate of a subject, "rate-[scope-]subject[-stamp]". The stamp is
// the subject's last update, so that an updated key starts afresh; empty for a
// rate that an update does not touch.
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
	return n.In.Join(kind, scope, afterScope, open, subject, end, beforeStamp, stamp)
}
