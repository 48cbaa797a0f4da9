package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluicegate/sluice/internal/usage"
)

// A Result compares what two configurations do with the same requests.
type Result struct {
	// Recorded requests that were looked at.
	Samples int `json:"samples"`
	// Time of the oldest of them; left out if there is none.
	From *time.Time `json:"from,omitempty"`
	// Time of the newest of them; left out if there is none.
	To *time.Time `json:"to,omitempty"`
	// Result in one sentence of English.
	Summary string `json:"summary"`

	// Requests that pass now, and would be refused.
	Refused Turned `json:"newly_refused"`
	// Requests that are refused now, and would pass.
	Allowed Turned `json:"newly_allowed"`
	// Requests that are refused now, and would be refused as well.
	Both int `json:"refused_by_both"`
	// Those of refused_by_both that would be refused for another reason than now.
	Otherwise int `json:"refused_otherwise"`
	// Requests that passed when they were recorded and are refused now: the configuration or the key
	// has changed, or the refusal depends on what is not recorded.
	Changed int `json:"refused_since"`

	// Requests that say nothing about the change, by reason.
	Skipped []Skipped `json:"not_compared"`
	// What the comparison leaves out of all requests, in English.
	Unknown []string `json:"not_part"`
}

// Turned are the samples that a change treats in another way.
type Turned struct {
	// Number of the requests.
	Samples int `json:"samples"`
	// Rules that refuse them, the most frequent first; at most 50.
	Rules []ByRule `json:"rules"`
	// Keys that made them, the most frequent first; at most 50.
	Keys []ByKey `json:"keys"`
	// Number of all keys that made them, also of those that are not listed.
	AllKeys int `json:"all_keys"`
	// APIs that they reach, the most frequent first; at most 50.
	APIs    []ByAPI `json:"apis"`
	perRule map[rule]*ByRule
	perKey  map[string]*ByKey
	perAPI  map[string]int
}

// A rule is what refuses requests.
type rule struct{ reason, stage, name, value, from string }

// ByRule are the samples that one rule refuses.
type ByRule struct {
	// Reason of the refusal, as metrics and logs have it.
	// Example: "rate_limit"
	Reason string `json:"reason"`
	// Name of the stage that refuses.
	Stage string `json:"stage,omitempty"`
	// Field or limit that decides, as definitions and policies call it.
	Rule string `json:"rule,omitempty"`
	// Value that the rule is set to.
	Value string `json:"value,omitempty"`
	// What has the rule: definition, policy or key.
	Source string `json:"from,omitempty"`
	// Number of the requests.
	Samples int `json:"samples"`
	// Newest of the requests, at most 5.
	Examples []Example `json:"examples"`
}

// ByKey are the samples of one key.
type ByKey struct {
	// Hash of the key; empty: without a known key.
	Hash string `json:"key_hash"`
	// Short form of the key's hash, as logs have it.
	Name string `json:"key,omitempty"`
	// Alias of the key; left out if it has none.
	Alias string `json:"alias,omitempty"`
	// Number of its requests.
	Samples int `json:"samples"`
}

// ByAPI are the samples of one API.
type ByAPI struct {
	// Id of the API.
	API string `json:"api_id"`
	// Number of the requests that reach it.
	Samples int `json:"samples"`
}

// An Example is one sample.
type Example struct {
	// X-Request-Id of the answer.
	ID string `json:"id"`
	// Time of the request.
	At time.Time `json:"at"`
	// Id of the API that it reached.
	API string `json:"api_id"`
	// Method of the request.
	Method string `json:"method"`
	// Path and query of the request; values of parameters that may authenticate are masked.
	URL string `json:"url"`
	// Name of the GraphQL operation; left out without one.
	Operation string `json:"operation,omitempty"`
	// Hash of the key; left out without a known key.
	Hash string `json:"key_hash,omitempty"`
	// Alias of the key; left out if it has none.
	Alias string `json:"alias,omitempty"`
	// Value of the request that the rule was compared with.
	Seen string `json:"seen,omitempty"`
	// Reason for which it is refused, in English.
	Said string `json:"said,omitempty"`
}

// Skipped are samples that were not compared.
type Skipped struct {
	// Reason for which the requests were not compared, in English.
	Why string `json:"why"`
	// Number of the requests.
	Samples int `json:"samples"`
}

// Bounds of a result.
const (
	mostListed   = 50
	mostRules    = 1000 // that are told apart
	mostExamples = 5
	mostText     = 300 // bytes of a text of an example
)

// A tally adds up a result.
type tally struct {
	Result
	as      string // id of the policy that callers have in place of their own rights; "": none
	skipped map[string]int
}

func newTally() *tally {
	return &tally{skipped: make(map[string]int), Result: Result{Refused: newTurned(), Allowed: newTurned()}}
}

func newTurned() Turned {
	return Turned{perRule: make(map[rule]*ByRule), perKey: make(map[string]*ByKey), perAPI: make(map[string]int)}
}

// add adds a sample.
func (t *tally) add(s *usage.Sample, p *Pair) {
	t.Samples++
	at := s.At
	if t.From == nil || at.Before(*t.From) {
		t.From = &at
	}
	if t.To == nil || at.After(*t.To) {
		t.To = &at
	}
	if p.Skipped != "" {
		t.skipped[p.Skipped]++
		return
	}
	if s.Reason == "" && !p.Before.Allowed {
		t.Changed++
	}
	switch {
	case p.Before.Allowed && !p.After.Allowed:
		t.Refused.add(s, &p.After, p.Alias)
	case !p.Before.Allowed && p.After.Allowed:
		t.Allowed.add(s, &p.Before, p.Alias)
	case !p.Before.Allowed:
		t.Both++
		if p.Before.Reason != p.After.Reason {
			t.Otherwise++
		}
	}
}

func (t *Turned) add(s *usage.Sample, o *Outcome, alias string) {
	t.Samples++
	t.perAPI[s.API]++
	k := t.perKey[s.Key]
	if k == nil {
		k = &ByKey{Hash: s.Key, Name: s.KeyName, Alias: alias}
		t.perKey[s.Key] = k
	}
	k.Samples++
	of := rule{o.Reason, o.Stage, cut(o.Rule), cut(o.Value), cut(o.From)}
	if len(t.perRule) >= mostRules && t.perRule[of] == nil {
		of = rule{reason: o.Reason}
	}
	r := t.perRule[of]
	if r == nil {
		r = &ByRule{Reason: of.reason, Stage: of.stage, Rule: of.name, Value: of.value, Source: of.from, Examples: []Example{}}
		t.perRule[of] = r
	}
	if r.Samples++; len(r.Examples) < mostExamples {
		r.Examples = append(r.Examples, Example{
			ID: s.ID, At: s.At, API: s.API, Method: s.Method, URL: cut(s.URL), Operation: s.Operation, Hash: s.Key, Alias: alias, Seen: cut(o.Seen), Said: cut(o.Said),
		})
	}
}

func cut(text string) string {
	if len(text) <= mostText {
		return text
	}
	return usage.Clean(text[:mostText]) + "…"
}

// list fills the lists.
func (t *Turned) list() {
	t.AllKeys = len(t.perKey)
	if _, unknown := t.perKey[""]; unknown {
		t.AllKeys--
	}
	t.Rules, t.Keys, t.APIs = []ByRule{}, []ByKey{}, []ByAPI{}
	for _, r := range t.perRule {
		t.Rules = append(t.Rules, *r)
	}
	for _, k := range t.perKey {
		t.Keys = append(t.Keys, *k)
	}
	for _, id := range slices.Sorted(maps.Keys(t.perAPI)) {
		t.APIs = append(t.APIs, ByAPI{id, t.perAPI[id]})
	}
	slices.SortFunc(t.Rules, func(a, b ByRule) int {
		return cmp.Or(b.Samples-a.Samples, cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Value, b.Value))
	})
	slices.SortFunc(t.Keys, func(a, b ByKey) int { return cmp.Or(b.Samples-a.Samples, cmp.Compare(a.Hash, b.Hash)) })
	slices.SortStableFunc(t.APIs, func(a, b ByAPI) int { return b.Samples - a.Samples })
	t.Rules, t.Keys, t.APIs = t.Rules[:min(len(t.Rules), mostListed)], t.Keys[:min(len(t.Keys), mostListed)], t.APIs[:min(len(t.APIs), mostListed)]
}

// left is what no sample can tell.
var left = []string{
	"Rates, quotas and concurrent load: how much was used at the time is not recorded, so all limits are taken as unused.",
	"Answers of upstreams, caches and circuit breakers: nothing is called.",
	"Bodies of requests that are not GraphQL, client certificates, and the validity of credentials: the recorded key is taken as it is now.",
	"Headers that no rule looked at when the request was recorded, unless gateway.sample_headers names them.",
}

// result returns what was added up.
func (t *tally) result() *Result {
	t.Refused.list()
	t.Allowed.list()
	t.Skipped, t.Unknown = []Skipped{}, left
	for _, why := range slices.Sorted(maps.Keys(t.skipped)) {
		t.Skipped = append(t.Skipped, Skipped{why, t.skipped[why]})
	}
	t.Summary = t.summary()
	return &t.Result
}

func (t *tally) summary() string {
	n := grouped(t.Samples) + " recorded requests"
	if t.Samples == 1 {
		n = "1 recorded request"
	}
	from := func(of *Turned) string {
		switch {
		case of.AllKeys == 0:
			return ""
		case of.AllKeys == 1:
			return ", from one key"
		}
		return ", from " + grouped(of.AllKeys) + " keys"
	}
	refused, allowed := grouped(t.Refused.Samples)+" of "+n+from(&t.Refused), grouped(t.Allowed.Samples)+" of "+n+from(&t.Allowed)
	if t.as != "" {
		return t.summaryAs(refused, allowed, n)
	}
	switch {
	case t.Refused.Samples > 0 && t.Allowed.Samples > 0:
		return "The change would refuse " + refused + ", and let pass " + grouped(t.Allowed.Samples) + " that are refused now" + from(&t.Allowed) + "."
	case t.Refused.Samples > 0:
		return "The change would refuse " + refused + "."
	case t.Allowed.Samples > 0:
		return "The change would let pass " + allowed + ", which are refused now."
	}
	return "The change would refuse none of " + n + ", and let pass no other."
}

// summaryAs is summary for callers that have one policy.
func (t *tally) summaryAs(refused, allowed, n string) string {
	with := "With policy " + t.as + " alone, "
	switch {
	case t.Samples == 0:
		return with + "no recorded request can be compared: none is of an API that the policy names."
	case t.Refused.Samples > 0 && t.Allowed.Samples > 0:
		return with + "callers would be refused " + refused + ", and " + grouped(t.Allowed.Samples) + " that are refused now would pass."
	case t.Refused.Samples > 0:
		return with + "callers would be refused " + refused + "."
	case t.Allowed.Samples > 0:
		return with + allowed + " would pass that are refused now, and no other would be refused."
	}
	return with + "callers would be refused none of " + n + ", and no other would pass."
}

// grouped formats a number: 10,000.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return grouped(n/1000) + fmt.Sprintf(",%03d", n%1000)
}
