package origin

import (
	"net/netip"
	"strconv"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/origin"
)

// The text is the one that users of comparable gateways know. It is the same for
// both lists, so that it does not tell which of them somebody is on.
var refused = pipeline.NewRejection(pipeline.ReasonAddressDenied, 403, "access from this IP has been disallowed")

// addresses is the stage that lets callers pass by their address.
type addresses struct {
	def              *definition.API
	allowed, blocked set
	only             bool // those of allowed alone may pass
}

// CompileAddresses returns the stage that refuses callers by their address, or nil
// when the definition lets all addresses pass.
func CompileAddresses(def *definition.API) (pipeline.Stage, error) {
	allowed, blocked, err := def.Addresses()
	if err != nil || !def.EnableIPAllowList && len(blocked) == 0 {
		return nil, err
	}
	return &addresses{def: def, allowed: newSet(allowed), blocked: newSet(blocked), only: def.EnableIPAllowList}, nil
}

// Handle refuses a caller who is not on the allow list, or is on the block list.
func (s *addresses) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if s.only && !s.allowed.has(ex.Client) || s.blocked.has(ex.Client) {
		return ex.Reject(refused)
	}
	return pipeline.Next
}

// Explain tells the entries that the caller's address was found in.
func (s *addresses) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
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

// entry returns the first entry of a list that an address is in.
func entry(list []string, a netip.Addr) string {
	for _, text := range list {
		if prefixes, _ := origin.ParseAddresses("", []string{text}); len(prefixes) > 0 {
			if one := newSet(prefixes); one.has(a) {
				return text
			}
		}
	}
	return "none of " + strconv.Itoa(len(list))
}
