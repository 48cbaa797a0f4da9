package definition

import "github.com/sluicegate/sluice/internal/definition/rates"

// RateLimits reads the rates that all callers of single paths share, of which
// there are none without use_extended_paths. The error is *Problems, with paths
// below extended_paths; beside it come those that are right.
func (v *Version) RateLimits() ([]rates.Path, error) {
	if !v.UseExtendedPaths {
		return nil, nil
	}
	all, faults := rates.Read(v.ExtendedPaths)
	return all, asProblems(faults...)
}

// Limits tells whether r holds callers back; nil does not.
func (r *RateLimit) Limits() bool { return r != nil && !r.Disabled && rates.Limits(r.Rate, r.Per) }

// Measures tells whether what the policy would refuse is counted and logged, and
// not refused.
func (p *Policy) Measures() bool { return p.Enforcement == "measure" }
