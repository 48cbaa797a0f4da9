// Package request reads GraphQL requests from HTTP: what a client asks for, in
// the body or in the URL, what it says about both, and which media type it
// takes. It refuses whatever another reader could take for something else.
//
// Rules: GraphQL over HTTP, September 2025; RFC 9110 section 12 for Accept.
package request

import "github.com/sluicegate/sluice/gateway/pipeline"

// A Request is one operation that a client asks for. Its slices alias the body,
// the URL or the scratch of the Decoder that read it.
type Request struct {
	Query     []byte // text of the document, without escapes; nil without one
	Operation []byte // operationName, without escapes; empty without one
	Variables []byte // JSON of an object; nil without one
	Hash      []byte // of extensions.persistedQuery: 64 hexadecimal digits in lower case; nil without one
}

// A Decoder reads requests. Its zero value is ready. It is for one goroutine at
// a time; what it returned is good until its next use.
type Decoder struct {
	list     []Request
	scratch  []byte              // texts without their escapes
	document *pipeline.Rejection // of a query beside a document that is named in a way that is not spoken here; nil: none is
}

// maxKept bounds, in bytes, the scratch that is kept between requests.
const maxKept = 32 << 10

// Reset lets go of what belongs to the last request.
func (d *Decoder) Reset() {
	clear(d.list)
	d.list, d.scratch = d.list[:0], d.scratch[:0]
	if cap(d.scratch) > maxKept {
		d.scratch = nil
	}
}

// member is one of the names that requests are made of.
type member uint8

const (
	other member = iota
	query
	operationName
	variables
	extensions
	documentID
	storedID  // other names of documentId
	lookalike // a name that some readers take for one of the others
	garbled   // a name that is not percent-encoded UTF-8
)

var names = [...]string{query: "query", operationName: "operationName", variables: "variables", extensions: "extensions", documentID: "documentId", garbled: ""}

// storedIDs are what servers read in place of documentId, and some of them in
// place of query as well.
var storedIDs = [...]string{"id", "doc_id"}

// known are the members that this gateway judges, and that must not be said
// twice.
var known = [...]member{query, operationName, variables, extensions, documentID}

// twice returns the refusal of a member that is there already.
func twice(m member) *pipeline.Rejection { return duplicate[m] }

var duplicate = func() (all [len(names)]*pipeline.Rejection) {
	for _, m := range known {
		all[m] = invalid("The request gives " + names[m] + " more than once.")
	}
	return all
}()

// complete refuses what has no operation to judge.
func (d *Decoder) complete(r *Request) *pipeline.Rejection {
	switch {
	case d.document != nil && r.Query != nil:
		return d.document
	case d.document != nil:
		return NotSupported
	case len(r.Query) == 0 && r.Hash == nil:
		return noQuery
	}
	return nil
}
