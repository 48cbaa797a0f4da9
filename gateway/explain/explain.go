// Package explain has the types of explanations: the description of a request, the
// report on a dry run of it, and the record of requests that were refused.
//
// The package decides nothing. A description becomes the bytes that a client would
// send, which the gateway reads and runs through its stages; a report has the findings
// of the stages.
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
	At       string  `json:"at,omitempty"`  // RFC 3339, when the request asks about another moment than now
	API      *API    `json:"api,omitempty"` // nil when none is reached
	Key      *Key    `json:"key,omitempty"` // nil when no key was found or needed
	Steps    []Step  `json:"steps"`
	Outcome  Outcome `json:"outcome"`
}

// API is the API that a request reaches.
type API struct {
	ID      string `json:"id"`
	Org     string `json:"org_id,omitempty"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"` // "" when there is no choice

	Tags     []string `json:"tags,omitempty"`     // the API is served by gateways with one of these; none: by all
	Gateways []string `json:"gateways,omitempty"` // that have one of the tags, as far as an admin knows
}

// Key is the key of a request.
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
	Untold   = "untold"   // the decision at that moment is unknown; the request goes on
)

// A Step is the decision of one stage.
type Step struct {
	API    string `json:"api,omitempty"` // id of the API of the stage, for an internal call
	Result string `json:"result"`
	pipeline.Finding
}

// An Outcome is the answer that the client would get.
type Outcome struct {
	Allowed bool   `json:"allowed"`          // no stage refuses the request
	Status  int    `json:"status,omitempty"` // of the gateway's own answer; 0: the upstream would answer
	Reason  string `json:"reason,omitempty"` // of a refusal
	Stage   string `json:"stage,omitempty"`  // that refuses
	Event   string `json:"event,omitempty"`  // that the refusal would raise
	Fix     string `json:"fix,omitempty"`    // what would let the request pass

	Untold []string `json:"untold,omitempty"` // stages whose decision at that moment is unknown

	Headers  []string `json:"headers,omitempty"` // lines of the gateway's own answer
	Body     string   `json:"body,omitempty"`    // of that answer
	Upstream *Plan    `json:"upstream,omitempty"`
}

// A Plan is the upstream request that would be sent.
type Plan struct {
	Address string   `json:"address"` // host:port
	Method  string   `json:"method"`
	Target  string   `json:"target"`            // path and query
	Added   []string `json:"added,omitempty"`   // header lines that the client did not send
	Removed []string `json:"removed,omitempty"` // names of header lines of the client that are not forwarded
	Body    string   `json:"body,omitempty"`    // what would be sent as body
}

// ResultOf returns the result of a verdict.
func ResultOf(v pipeline.Verdict) string {
	switch v {
	case pipeline.Rejected:
		return Failed
	case pipeline.Answered:
		return Answered
	}
	return OK
}

// A Refusal is the record of a refused request.
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
	Limits   []Counted `json:"limits,omitempty"` // at that time
	Errors   string    `json:"errors,omitempty"` // the GraphQL answer, or its beginning

	Upstream string `json:"upstream,omitempty"` // address of the target that was called without success
	Cause    string `json:"cause,omitempty"`    // why that call failed
}

// Counted is the state of a limit.
type Counted struct {
	Kind      string     `json:"kind"` // rate or quota
	Max       int64      `json:"max"`
	Period    string     `json:"period,omitempty"` // "" when it never renews
	Remaining int64      `json:"remaining"`
	ResetAt   *time.Time `json:"reset_at,omitempty"`
}
