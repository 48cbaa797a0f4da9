package rest

import "time"

// A Route is one method on one path: who may call it, what it takes and answers, and
// its handler. The path is served with and without a final slash.
type Route struct {
	Method, Path string
	Summary, Tag string

	Role      Role // the lowest that may call it; Anyone needs no credential
	Gateway   bool // the role gateway may call it as well
	Developer bool // the role developer may call it as well, for objects of their own
	Waits     bool // a long-poll

	MaxBody int           // bytes of a body; 0: MaxBody of the package
	Within  time.Duration // bound on the work; 0: that of all routes

	Query  []string // parameters, documented in openapi.go
	Body   any      // zero value of the body; nil: none
	Empty  bool     // the body may be left out
	Match  bool     // If-Match is honoured
	Reply  any      // zero value of the answer
	Rows   any      // zero value of the answer with view=row; nil: there is none
	Or     any      // zero value of another answer that it may have; nil: there is none
	Status int      // of the answer; 0: 200
	Fault  any      // zero value of the answer to failures; nil: Envelope
	Type   string   // content type of an answer that is not JSON
	Events bool     // with the member stream of the body the answer is a text/event-stream
	Form   any      // zero value of a body that is a form; the handler reads it
	Media  string   // content type that the body must have; "": that of JSON
	Secret bool     // the answer holds a credential, and is not stored for repetitions of the call
	Open   bool     // the handler itself leaves out what a caller may not see: nothing is masked for users below editor
	Wrong  []int    // statuses of failures, beside those of every route

	Handle Handler
}

// Update is a method that some clients use in place of PUT. OpenAPI has no such method:
// PUT on the same path does the same and is described.
const Update = "UPDATE"

// Name returns the name of the route in logs and metrics.
func (r *Route) Name() string { return r.Method + " " + r.Path }

// Allows reports whether a role may call the route.
func (r *Route) Allows(who Role) bool {
	switch {
	case r.Role == Anyone || who == r.Role:
		return true
	case who == Gateway:
		return r.Gateway
	case who == Developer:
		return r.Developer
	}
	return r.Role.rank() > 0 && who.rank() >= r.Role.rank()
}

// Parameters that several lists have.
var (
	Paging    = []string{"p", "page_size"}
	Searching = []string{"p", "page_size", "q", "sort"}
)
