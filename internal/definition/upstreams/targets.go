package upstreams

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A Target is an upstream that an API's calls may go to.
type Target struct {
	URL    string
	Weight int    // its share of the calls, at least 1
	At     string // path of what the definition says of it
}

// Bounds of a list of targets.
const (
	maxTargets = 256
	maxWeight  = 1_000
	maxWeights = 10_000 // all weights together
)

// targets reads a list whose entries are URLs, or objects of a URL and a weight.
// A URL that stands several times has the weight of all its entries.
func (r *reader) targets(path string, raw json.RawMessage) []Target {
	var list []json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null" || string(raw) == "[]":
		r.Add(path, `must name the targets while proxy.enable_load_balancing is true: URLs, or objects such as {"url": "http://a.example:8080", "weight": 3}`)
		return nil
	case raw[0] != '[':
		r.Addf(path, "must be an array, not %s", object.TypeName(raw[0]))
		return nil
	}
	_ = json.Unmarshal(raw, &list) // an array of valid JSON
	r.Count(path, len(list), maxTargets)
	var targets []Target
	places := make(map[string]int, len(list)) // by URL
	all := 0
	for i, one := range list {
		t, ok := r.target(object.Item(path, i), one)
		if !ok {
			continue
		}
		all += t.Weight
		if at, twice := places[t.URL]; twice {
			targets[at].Weight += t.Weight
			continue
		}
		places[t.URL] = len(targets)
		targets = append(targets, t)
	}
	if all > maxWeights {
		r.Addf(path, "has weights of %d together; at most %d are allowed: divide them by a number that they have in common", all, maxWeights)
	}
	return targets
}

func (r *reader) target(at string, raw json.RawMessage) (Target, bool) {
	if raw[0] == '"' {
		return Target{URL: object.Unquote(raw), Weight: 1, At: at}, true
	}
	if raw[0] != '{' {
		r.Addf(at, `must be a URL, or an object such as {"url": "http://a.example:8080", "weight": 3}, not %s`, object.TypeName(raw[0]))
		return Target{}, false
	}
	var one struct {
		URL    string `json:"url"`
		Weight int    `json:"weight"`
	}
	if !decode(r, at, raw, &one) {
		return Target{}, false
	}
	return Target{URL: one.URL, Weight: r.count(at+".weight", one.Weight, maxWeight, 1), At: at + ".url"}, true
}

// Ejection is when a target that fails is left out for a while.
type Ejection struct {
	Failures int           // in a row, after which it is
	For      time.Duration // how long at first; each time longer while it goes on failing
	Longest  time.Duration // the longest time
}

func (r *reader) ejection(path string, raw json.RawMessage) *Ejection {
	var one struct {
		Disabled bool    `json:"disabled"`
		Failures int     `json:"failures"`
		Seconds  float64 `json:"seconds"`
		Longest  float64 `json:"longest"`
	}
	decode(r, path, raw, &one)
	e := &Ejection{
		Failures: r.count(path+".failures", one.Failures, 1000, 5),
		For:      r.within(path+".seconds", one.Seconds, 0.1, 3600, 10*time.Second),
		Longest:  r.within(path+".longest", one.Longest, 0.1, 86400, 5*time.Minute),
	}
	if e.Longest < e.For {
		e.Longest = e.For
		if one.Longest != 0 {
			r.Add(path+".longest", fmt.Sprintf("must not be below the %g seconds of the first time", e.For.Seconds()))
		}
	}
	if one.Disabled {
		return nil
	}
	return e
}
