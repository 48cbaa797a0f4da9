package pipeline

import (
	"strconv"
	"time"
)

// An Explainer is a stage that can say why it decided as it did. Stages that
// are always passed in the same way need not be one.
type Explainer interface {
	// Explain adds to f what the stage looked at in ex, which it has just handled
	// with the verdict of f. It runs for explanations only and may allocate. It
	// never tells a credential, nor a name that is hidden from the key.
	Explain(ex *Exchange, f *Finding)
}

// A Finding is what one stage decided about one exchange.
type Finding struct {
	Stage   string  `json:"stage"`           // its name in the gateway's list
	Verdict Verdict `json:"-"`               // that Handle gave
	Said    string  `json:"said,omitempty"`  // in one line, for people
	Facts   []Fact  `json:"facts,omitempty"` // what it decided by, the most important first
	Fix     string  `json:"fix,omitempty"`   // of a refusal: what would let the request pass
	Untold  bool    `json:"-"`               // what the stage would decide at the moment asked about is not known
}

// Moment is when an exchange takes place: what ends or begins is judged by it.
func (ex *Exchange) Moment() time.Time {
	if ex.Due != nil {
		return *ex.Due
	}
	return ex.Started
}

// A Fact is a rule that a stage held an exchange against.
type Fact struct {
	Rule  string `json:"rule"`           // the field or limit, as definitions, policies and keys call it
	Value string `json:"value"`          // what it is set to
	Seen  string `json:"seen,omitempty"` // what the request has of it
	From  string `json:"from,omitempty"` // where the value comes from: definition, policy, key, setting
}

// Fact adds a fact.
func (f *Finding) Fact(rule, value, seen, from string) {
	f.Facts = append(f.Facts, Fact{rule, value, seen, from})
}

// Walk is Run for explanations: it tells of each stage that the exchange passes
// what it decided.
func Walk(stages []Stage, ex *Exchange, tell func(at int, s Stage, v Verdict)) Verdict {
	for i, s := range stages {
		v := s.Handle(ex)
		tell(i, s, v)
		if v != Next {
			ex.Stopped = uint8(i)
			return v
		}
	}
	return Next
}

// Span writes a length of time as people read limits: 60 s, 1.5 s, 250 ms.
func Span(d time.Duration) string {
	if d < time.Second && d%time.Second != 0 {
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}
