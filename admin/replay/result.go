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
	Samples int        `json:"samples" doc:"recorded requests that were looked at"`
	From    *time.Time `json:"from,omitempty" doc:"time of the oldest"`
	To      *time.Time `json:"to,omitempty" doc:"time of the newest"`
	Summary string     `json:"summary" doc:"in one sentence"`

	Refused   Turned `json:"newly_refused" doc:"that pass now, and would be refused"`
	Allowed   Turned `json:"newly_allowed" doc:"that are refused now, and would pass"`
	Both      int    `json:"refused_by_both"`
	Otherwise int    `json:"refused_otherwise" doc:"of refused_by_both, those with another reason than now"`
	Changed   int    `json:"refused_since" doc:"that passed when they were recorded and are refused now: the configuration or the key has changed, or the refusal depends on what is not recorded"`

	Skipped []Skipped `json:"not_compared" doc:"samples that say nothing about the change, by why"`
	Unknown []string  `json:"not_part" doc:"what the comparison leaves out of all samples"`
}

// Turned are the samples that a change treats in another way.
type Turned struct {
	Samples int      `json:"samples"`
	Rules   []ByRule `json:"rules" doc:"what refuses them; at most 50, the most frequent first"`
	Keys    []ByKey  `json:"keys" doc:"whose samples they are; at most 50, the most frequent first"`
	AllKeys int      `json:"all_keys" doc:"number of the keys, also of those that are not listed"`
	APIs    []ByAPI  `json:"apis" doc:"at most 50, the most frequent first"`
	perRule map[rule]*ByRule
	perKey  map[string]*ByKey
	perAPI  map[string]int
}

// A rule is what refuses requests.
type rule struct{ reason, stage, name, value, from string }

// ByRule are the samples that one rule refuses.
type ByRule struct {
	Reason   string    `json:"reason"`
	Stage    string    `json:"stage,omitempty"`
	Rule     string    `json:"rule,omitempty" doc:"the field or limit, as definitions and policies call it"`
	Value    string    `json:"value,omitempty" doc:"of the rule"`
	Source   string    `json:"from,omitempty" doc:"what has the rule: definition, policy or key"`
	Samples  int       `json:"samples"`
	Examples []Example `json:"examples" doc:"at most 5, the newest"`
}

// ByKey are the samples of one key.
type ByKey struct {
	Hash    string `json:"key_hash" doc:"empty: without a known key"`
	Name    string `json:"key,omitempty" doc:"what logs call the key"`
	Alias   string `json:"alias,omitempty"`
	Samples int    `json:"samples"`
}

// ByAPI are the samples of one API.
type ByAPI struct {
	API     string `json:"api_id"`
	Samples int    `json:"samples"`
}

// An Example is one sample.
type Example struct {
	ID        string    `json:"id" doc:"X-Request-Id of the answer"`
	At        time.Time `json:"at"`
	API       string    `json:"api_id"`
	Method    string    `json:"method"`
	URL       string    `json:"url"`
	Operation string    `json:"operation,omitempty"`
	Hash      string    `json:"key_hash,omitempty"`
	Alias     string    `json:"alias,omitempty"`
	Seen      string    `json:"seen,omitempty" doc:"the value of the request"`
	Said      string    `json:"said,omitempty" doc:"why it is refused"`
}

// Skipped are samples that were not compared.
type Skipped struct {
	Why     string `json:"why"`
	Samples int    `json:"samples"`
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
