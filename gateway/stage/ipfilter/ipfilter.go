// Package ipfilter refuses calls by the address of the client.
package ipfilter

import (
	"net/netip"
	"strconv"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// The text is the one that users of comparable gateways know. It is the same for
// both lists, so that the response does not reveal which list matched.
var refused = pipeline.NewRejection(pipeline.ReasonAddressDenied, 403, "access from this IP has been disallowed")

// filter is the stage that checks the address of the client.
type filter struct {
	def              *definition.API
	allowed, blocked set
	only             bool // an address must be in allowed
}

// Compile returns the stage that refuses calls by the address of the client, or nil
// if the definition restricts none.
func Compile(def *definition.API) pipeline.Stage {
	allowed, blocked := def.Addresses()
	if !def.EnableIPAllowList && len(blocked) == 0 {
		return nil
	}
	return &filter{def: def, allowed: newSet(allowed), blocked: newSet(blocked), only: def.EnableIPAllowList}
}

// Handle refuses an address that is not on the allow list, or is on the block list.
func (s *filter) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if s.only && !s.allowed.has(ex.Client) || s.blocked.has(ex.Client) {
		return ex.Reject(refused)
	}
	return pipeline.Next
}

// Explain reports the entries that match the client's address.
func (s *filter) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	seen := ex.Client.String()
	if s.only {
		f.Fact("allowed_ips", entry(s.def.AllowedIPs, ex.Client), seen, "definition")
	}
	if len(s.blocked.v4)+len(s.blocked.v6) > 0 {
		f.Fact("blacklisted_ips", entry(s.def.BlockedIPs, ex.Client), seen, "definition")
	}
	switch {
	case f.Verdict != pipeline.Rejected:
		f.Said = "calls from " + seen + " may pass"
	case s.only && !s.allowed.has(ex.Client):
		f.Said = seen + " is not on the list of those who may call"
		f.Fix = "add the address to allowed_ips of the definition; behind a proxy, name that in the gateway's trusted_proxies"
	default:
		f.Said = seen + " is on the list of those who may not call"
		f.Fix = "take the address out of blacklisted_ips of the definition"
	}
}

// entry returns the first entry of a list that contains an address.
func entry(list []string, a netip.Addr) string {
	for _, text := range list {
		prefix, problem := definition.ParseAddress(text)
		if one := newSet([]netip.Prefix{prefix}); problem == "" && one.has(a) {
			return text
		}
	}
	return "none of " + strconv.Itoa(len(list))
}
