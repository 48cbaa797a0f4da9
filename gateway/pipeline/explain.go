package pipeline

import (
	"strconv"
	"time"
)

// An Explainer is a stage that explains its decisions. Stages that never refuse or
// change a request need not be one.
type Explainer interface {
	// Explain adds to f why Handle has just returned the verdict of f for ex. It runs
	// for explanations only and may allocate. It never reveals a credential, nor a
	// name that is hidden from the key.
	Explain(ex *Exchange, f *Finding)
}

// A Finding is what one stage decided about one exchange.
type Finding struct {
	Stage   string  `json:"stage"`           // its name in the gateway's list
	Verdict Verdict `json:"-"`               // returned by Handle
	Said    string  `json:"said,omitempty"`  // in one line
	Facts   []Fact  `json:"facts,omitempty"` // the rules of the decision, the most important first
	Fix     string  `json:"fix,omitempty"`   // of a refusal: what would let the request pass
	Untold  bool    `json:"-"`               // the decision at the moment of the dry run is unknown
}

// Moment returns the time of an exchange by which validity is decided: that of the
// dry run, or of the request.
func (ex *Exchange) Moment() time.Time {
	if at := ex.DryRunAt(); at != nil {
		return *at
	}
	return ex.Started
}

// A Fact is a rule that a stage checked.
type Fact struct {
	Rule  string `json:"rule"`           // the field or limit, as definitions, policies and keys call it
	Value string `json:"value"`          // what it is set to
	Seen  string `json:"seen,omitempty"` // the value of the request
	From  string `json:"from,omitempty"` // where the value comes from: definition, policy, key, setting
}

// Fact adds a fact.
func (f *Finding) Fact(rule, value, seen, from string) {
	f.Facts = append(f.Facts, Fact{rule, value, seen, from})
}

// Span formats a duration for explanations: 60 s, 1.5 s, 250 ms.
func Span(d time.Duration) string {
	if d < time.Second && d%time.Second != 0 {
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}
