// Package upstreams reads what a definition says about calls to its upstreams:
// which targets there are, how it is found out which of them are well, when
// calls are given up, and when they are not even tried.
package upstreams

import (
	"encoding/json"
	"math"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
)

// A Source is where it stands, as it was written: nil for what is left out. Every
// part is valid JSON.
type Source struct {
	Balance     bool            // proxy.enable_load_balancing
	Targets     json.RawMessage // proxy.target_list
	Ejection    json.RawMessage // proxy.ejection
	HealthCheck json.RawMessage // proxy.health_check
	Breaker     json.RawMessage // proxy.circuit_breaker
	Uptime      json.RawMessage // uptime_tests
}

// Rules is what an API's definition says, complete with defaults.
type Rules struct {
	Targets  []Target  // of which calls choose; empty: there is one, which the definition names
	Ejection *Ejection // nil: targets that fail go on being called
	Check    *Check    // of every target; nil: none is asked how it is
	Uptime   []Check   // of addresses by themselves
	Breaker  *Breaker  // of all calls; nil: none
}

// Read reads the rules of an API. The faults are all that is wrong, with the path
// of each.
func Read(s Source) (Rules, []object.Fault) {
	var rules Rules
	var r reader
	if s.Balance {
		rules.Targets = r.targets("proxy.target_list", s.Targets)
		rules.Ejection = r.ejection("proxy.ejection", s.Ejection)
	}
	rules.Check = r.healthCheck("proxy.health_check", s.HealthCheck)
	rules.Uptime = r.uptime("uptime_tests", s.Uptime)
	rules.Breaker = r.breaker("proxy.circuit_breaker", s.Breaker)
	return rules, r.Faults
}

// maxCalls is how many entries one list of extended_paths may have.
const maxCalls = 10_000

// CallRules is what a version of a definition says about calls of certain paths.
type CallRules struct {
	Breakers []CallBreaker
	Limits   []TimeLimit
}

// ReadCalls reads the rules for paths out of a version's extended_paths. The paths
// of faults are below that.
func ReadCalls(extended json.RawMessage) (CallRules, []object.Fault) {
	var rules CallRules
	var r reader
	var lists struct {
		Breakers []callBreaker `json:"circuit_breakers"`
		Limits   []timeLimit   `json:"hard_timeouts"`
	}
	if !decode(&r, "", extended, &lists) {
		return rules, r.Faults
	}
	r.Count("circuit_breakers", len(lists.Breakers), maxCalls)
	for i, one := range lists.Breakers {
		if at := object.Item("circuit_breakers", i); !one.Disabled {
			r.call(at, one.Call)
			rules.Breakers = append(rules.Breakers, CallBreaker{one.Call, r.limits(at, one.breaker)})
		}
	}
	r.Count("hard_timeouts", len(lists.Limits), maxCalls)
	for i, one := range lists.Limits {
		if at := object.Item("hard_timeouts", i); !one.Disabled {
			r.call(at, one.Call)
			rules.Limits = append(rules.Limits, TimeLimit{one.Call, r.limit(at+".timeout", one.Timeout)})
		}
	}
	return rules, r.Faults
}

// Call says which calls an entry of extended_paths is for.
type Call struct {
	Path       string `json:"path"`        // a pattern, below the listen path
	Method     string `json:"method"`      // in upper case; "" is every method
	IgnoreCase bool   `json:"ignore_case"` // letters of the path match in either case
	Disabled   bool   `json:"disabled"`
}

// A reader reads parts of a definition and gathers what is wrong with them.
type reader struct{ object.Faults }

// decode reads the object that stands at path, and tells whether there is one
// that could be read.
func decode[T any](r *reader, path string, raw json.RawMessage, into *T) bool {
	if len(raw) == 0 || string(raw) == "null" {
		return false
	}
	found := object.Decode(raw, into)
	r.Below(path, found)
	return len(found) == 0
}

// call checks which calls an entry is for.
func (r *reader) call(at string, c Call) {
	if err := pattern.Check(c.Path); err != nil {
		r.Addf(at+".path", "%v", err)
	}
	if !isMethod(c.Method) {
		r.Addf(at+".method", "must be a method in upper case such as GET, or be left out for all of them")
	}
}

func isMethod(method string) bool {
	for _, c := range []byte(method) {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return len(method) <= 32
}

// within takes a number of seconds that must lie in [least, most]; 0 stands for
// otherwise.
func (r *reader) within(path string, seconds, least, most float64, otherwise time.Duration) time.Duration {
	if seconds == 0 {
		return otherwise
	}
	if seconds < least || seconds > most || math.IsNaN(seconds) {
		r.Addf(path, "must be from %g to %g seconds, or 0 for %g", least, most, otherwise.Seconds())
		return otherwise
	}
	return time.Duration(seconds * float64(time.Second))
}

// count takes a number that must lie in [1, most]; 0 stands for otherwise.
func (r *reader) count(path string, n, most, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	if n < 1 || n > most {
		r.Addf(path, "must be from 1 to %d, or 0 for %d", most, otherwise)
		return otherwise
	}
	return n
}
