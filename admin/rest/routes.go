package rest

import (
	"time"

	"github.com/sluicegate/sluice/admin/openapi"
)

// A Route is one method on one path: who may call it, what goes in and out, and
// what answers. Both spellings of the path, with and without a final slash, are
// served.
type Route struct {
	Method, Path string
	Summary, Tag string

	Role      Role // the least that is needed; Anyone asks for nothing, not even a credential
	Gateway   bool // the role gateway may call it as well
	Developer bool // the role developer may call it as well, for what is theirs
	Waits     bool // a long-poll

	MaxBody int           // bytes of a body; 0: MaxBody of the package
	Within  time.Duration // bound on the work; 0: that of all routes

	Query  []string // parameters, documented in package openapi
	Body   any      // zero value of what is sent; nil: nothing
	Empty  bool     // the body may be left out
	Match  bool     // If-Match is heeded
	Reply  any      // zero value of what is answered
	Plain  bool     // the answer is text
	Secret bool     // the answer holds a credential: it is not kept for who sends the call again
	Wrong  []int    // statuses of failures, beside those of every route

	Handle Handler
}

// Update is a method that some clients call what they change by. OpenAPI knows none
// of that name: PUT on the same path does the same, and is described.
const Update = "UPDATE"

// Name tells the route in logs and metrics.
func (r *Route) Name() string { return r.Method + " " + r.Path }

// Allows tells whether a role may call the route.
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

// Describe writes the OpenAPI document of the routes.
func Describe(routes []Route, version string) ([]byte, error) {
	described := make([]openapi.Route, 0, len(routes))
	for _, r := range routes {
		if r.Method == Update {
			continue
		}
		d := openapi.Route{
			Method: r.Method, Path: r.Path, Summary: r.Summary, Tag: r.Tag, Query: r.Query, Match: r.Match,
			Body: r.Body, Optional: r.Empty, Reply: r.Reply, Plain: r.Plain, Failure: Envelope{}, Wrong: r.Wrong,
		}
		if r.Role != Anyone {
			d.Access = "Needs the role " + string(r.Role) + "."
			d.Wrong = append([]int{401, 403, 429, 503}, r.Wrong...)
		}
		if r.Gateway {
			d.Access += " Gateways may call it."
		}
		if r.Developer {
			d.Access += " Developers may call it for what is theirs."
		}
		described = append(described, d)
	}
	return openapi.Describe(described, version)
}

// Parameters that several lists have.
var (
	Paging    = []string{"p", "page_size"}
	Searching = []string{"p", "page_size", "q", "sort"}
)
