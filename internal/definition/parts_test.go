package definition

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// checked reads a part of a definition, and returns what is wrong with it: what
// cannot be read, else what check finds. Nothing and null are nil.
func checked[T any](raw string, check func(*T) object.Faults) (*T, []object.Fault) {
	if raw == "" || raw == "null" {
		return nil, check(nil)
	}
	v := new(T)
	if faults := object.Decode([]byte(raw), v); len(faults) > 0 {
		return v, faults
	}
	return v, check(v)
}

// readExtended reads extended_paths that are in use. Paths of faults are below it.
func readExtended(raw string) (*Version, []object.Fault) {
	v := &Version{UseExtendedPaths: true}
	_, faults := checked(raw, func(e *ExtendedPaths) object.Faults {
		v.ExtendedPaths = e
		var p Problems
		p.checkVersion("", v)
		p.checkExtended("", v.Extended())
		var f object.Faults
		for _, one := range p {
			f.Add(strings.TrimPrefix(one.Path, "extended_paths."), one.Message)
		}
		return f
	})
	return v, faults
}

// readUpstreams reads the members of an API that say something about upstreams.
func readUpstreams(t *testing.T, raw string) (UpstreamRules, []object.Fault) {
	t.Helper()
	var r upstreamReader
	var rules UpstreamRules
	_, faults := checked(raw, func(a *API) object.Faults {
		rules = r.read(a)
		return r.Faults
	})
	return rules, faults
}

func joined(faults []object.Fault) string {
	var all []string
	for _, f := range faults {
		all = append(all, f.Path+": "+f.Message)
	}
	return strings.Join(all, "\n")
}
