// Package explain is what explanations are made of: the description of a request
// that is only thought of, the report on what would become of it, and the
// refusals that a gateway remembers.
//
// The package decides nothing. Descriptions become the bytes that a client would
// send, which the gateway reads and walks through its stages as it does with any
// others; a report holds what the stages said.
package explain

import (
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// A Report is the explanation of one request.
type Report struct {
	Method   string  `json:"method"`
	Path     string  `json:"path"` // as it was sent, without the query
	Revision string  `json:"revision"`
	At       string  `json:"at,omitempty"`  // RFC 3339, when another moment is asked about than now
	API      *API    `json:"api,omitempty"` // nil when none is reached
	Key      *Key    `json:"key,omitempty"` // nil when no key was found, or none is asked for
	Steps    []Step  `json:"steps"`
	Outcome  Outcome `json:"outcome"`
}

// API says which API a request reaches.
type API struct {
	ID      string `json:"id"`
	Org     string `json:"org_id,omitempty"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"` // "" when there is no choice
}

// Key says which key a request comes with.
type Key struct {
	Name     string   `json:"name"` // what logs call it
	Alias    string   `json:"alias,omitempty"`
	Policies []string `json:"policies,omitempty"`
}

// The results of a step.
const (
	OK       = "ok"       // the request goes on
	Answered = "answered" // the stage itself answers
	Failed   = "fail"     // the request is refused
	Untold   = "untold"   // what it would be at the moment asked about is not known; the request goes on
)

// A Step is what one stage made of a request.
type Step struct {
	API    string `json:"api,omitempty"` // id of the one that the stage is of, when the request was handed over to it
	Result string `json:"result"`
	pipeline.Finding
}

// An Outcome is what the client would get.
type Outcome struct {
	Allowed bool   `json:"allowed"`          // no stage refuses the request
	Status  int    `json:"status,omitempty"` // of the gateway's own answer; 0: the upstream would answer
	Reason  string `json:"reason,omitempty"` // of a refusal
	Stage   string `json:"stage,omitempty"`  // that refuses
	Event   string `json:"event,omitempty"`  // that the refusal would raise
	Fix     string `json:"fix,omitempty"`    // what would let the request pass

	Untold []string `json:"untold,omitempty"` // stages that cannot tell what they would decide at the moment asked about

	Headers  []string `json:"headers,omitempty"` // lines of the gateway's own answer
	Body     string   `json:"body,omitempty"`    // of that answer
	Upstream *Plan    `json:"upstream,omitempty"`
}

// A Plan is the call that would go upstream.
type Plan struct {
	Address string   `json:"address"` // host:port
	Method  string   `json:"method"`
	Target  string   `json:"target"`            // path and query
	Added   []string `json:"added,omitempty"`   // header lines that the client did not send
	Removed []string `json:"removed,omitempty"` // names of header lines of the client's that do not go up
	Body    string   `json:"body,omitempty"`    // what becomes of the body
}

// ResultOf returns what a verdict means to the request.
func ResultOf(v pipeline.Verdict) string {
	switch v {
	case pipeline.Rejected:
		return Failed
	case pipeline.Answered:
		return Answered
	}
	return OK
}

// A Refusal is what a gateway remembers of a request that it refused.
type Refusal struct {
	ID       string    `json:"id"` // X-Request-Id of the answer
	At       time.Time `json:"at"`
	Stage    string    `json:"stage"`
	Status   int       `json:"status"`
	Reason   string    `json:"reason"`
	Message  string    `json:"message"`
	Method   string    `json:"method,omitempty"`
	Path     string    `json:"path,omitempty"` // as it was sent, without the query
	Client   string    `json:"client,omitempty"`
	API      *API      `json:"api,omitempty"`
	Key      string    `json:"key,omitempty"` // what logs call it
	Policy   string    `json:"policy,omitempty"`
	Revision string    `json:"revision,omitempty"`
	Limits   []Counted `json:"limits,omitempty"` // as they stood then
	Errors   string    `json:"errors,omitempty"` // the GraphQL answer, or its beginning
}

// Counted is how a limit stood.
type Counted struct {
	Kind      string     `json:"kind"` // rate or quota
	Max       int64      `json:"max"`
	Period    string     `json:"period,omitempty"` // "" when it never renews
	Remaining int64      `json:"remaining"`
	ResetAt   *time.Time `json:"reset_at,omitempty"`
}
