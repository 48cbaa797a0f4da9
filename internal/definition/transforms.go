package definition

import (
	"net/netip"

	"github.com/sluicegate/sluice/internal/definition/origin"
	"github.com/sluicegate/sluice/internal/definition/transform"
)

// CrossOrigin reads which web pages may call the API, nil when browsers are told
// nothing. The error is *Problems.
func (a *API) CrossOrigin() (*origin.CORS, error) {
	c, faults := origin.ParseCORS(a.CORS)
	return c, asProblems(faults...)
}

// Addresses reads the lists of client addresses that are on: those that alone may
// call the API, and those that may not. One that is off is nil. The error is
// *Problems.
func (a *API) Addresses() (allowed, blocked []netip.Prefix, err error) {
	allowed, allowedFaults := origin.ParseAllowed(a.EnableIPAllowList, a.AllowedIPs)
	blocked, blockedFaults := origin.ParseBlocked(a.EnableIPBlockList, a.BlockedIPs)
	return allowed, blocked, asProblems(append(allowedFaults, blockedFaults...)...)
}

// Transforms reads the version's rules for headers and URLs of single calls, of
// which there are none without use_extended_paths. The error is *Problems, with
// paths below extended_paths.
func (v *Version) Transforms() (*transform.Rules, error) {
	if !v.UseExtendedPaths {
		return &transform.Rules{}, nil
	}
	rules, faults := transform.Parse(v.ExtendedPaths)
	return rules, asProblems(faults...)
}

// checkHeaderRules checks the headers that a version sets and takes off for all
// calls.
func (p *Problems) checkHeaderRules(at string, v *Version) {
	p.join(at, asProblems(transform.CheckGlobal("global_headers", v.GlobalHeaders, v.GlobalHeadersRemove, v.GlobalHeadersDisabled)...))
	p.join(at, asProblems(transform.CheckGlobal("global_response_headers", v.GlobalResponseHeaders, v.GlobalResponseHeadersRemove, v.GlobalResponseHeadersDisabled)...))
}
