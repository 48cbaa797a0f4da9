package pipeline

import (
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// API is one API definition, compiled. Published, it never changes; a reload
// that leaves the definition as it was carries the same *API over.
type API struct {
	Definition *definition.API
	Entry      []Stage    // what every call passes first; may choose the version
	Version    *Version   // of calls that choose none
	Versions   []*Version // all of them, Version included
	Handed     *Version   // of calls that the entry hands over, as versions that are other APIs; nil: there are none
	Meter      Meter      // counts the API's traffic; nil: it counts as nobody's

	// Form is another number for every compiled form of an API that answers all who
	// ask it the same alike, by what the gateway knows; 0 for any other API.
	Form   uint64
	Onward *Ref // the API that calls of such an API go on to; nil: none

	EntryMade Made // which stages are in Entry

	Schema *schema.Schema // what Exchange.Operations refer to; nil when it is no GraphQL API
}

// Version is one version of an API, compiled. An API that has no versions has
// one of these all the same.
type Version struct {
	Name       string              // "" when calls cannot choose
	Place      int                 // in API.Versions
	Definition *definition.Version // nil when the definition says nothing about it
	Request    []Stage             // in the gateway's stage order; a stage with nothing to do is absent
	Open       []Stage             // in place of Request for calls on paths that ask for no key; nil when there are none
	Forward    Stage               // answers
	Upstream   Stage               // calls the upstream: Forward, or what Forward does so with
	Response   []Stage             // what is done to an upstream's answer on its way back
	Refused    []Stage             // what is done to a refusal's answer

	RequestMade, OpenMade, ResponseMade Made // which stages are in Request, Open and Response
}

// Made tells which stages of a list that the gateway has were made for an API:
// bit i stands for the i-th. So a stage's place among those made says which it is.
type Made uint32

// Kind returns the place in the gateway's list of the stage that is at a place
// among those made, or -1 when there is no such stage.
func (m Made) Kind(at int) int {
	for kind := 0; m != 0; kind, m = kind+1, m>>1 {
		if m&1 == 0 {
			continue
		}
		if at == 0 {
			return kind
		}
		at--
	}
	return -1
}

// A Meter records finished exchanges. Done runs on every request and does not
// allocate.
type Meter interface{ Done(ex *Exchange) }
