package definition

import (
	"net/netip"

	"github.com/sluicegate/sluice/internal/definition/object"
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
	var f object.Faults
	if a.EnableIPAllowList {
		var faults []object.Fault
		allowed, faults = origin.ParseAddresses("allowed_ips", a.AllowedIPs)
		f.Below("", faults)
		if len(a.AllowedIPs) == 0 {
			f.Add("allowed_ips", "must name who may call, as enable_ip_whitelisting is true; turn that off to let everybody call")
		}
	}
	if a.EnableIPBlockList {
		var faults []object.Fault
		blocked, faults = origin.ParseAddresses("blacklisted_ips", a.BlockedIPs)
		f.Below("", faults)
	}
	return allowed, blocked, asProblems(f...)
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
	var f object.Faults
	if !v.GlobalHeadersDisabled {
		f.Below("", transform.CheckHeaders("global_headers", v.GlobalHeaders))
		f.Below("", transform.CheckNames("global_headers_remove", v.GlobalHeadersRemove))
	}
	if !v.GlobalResponseHeadersDisabled {
		f.Below("", transform.CheckHeaders("global_response_headers", v.GlobalResponseHeaders))
		f.Below("", transform.CheckNames("global_response_headers_remove", v.GlobalResponseHeadersRemove))
	}
	p.join(at, asProblems(f...))
}
