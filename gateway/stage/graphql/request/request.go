// Package request parses GraphQL requests in HTTP: the operation in the body or
// the URL, the headers that describe it, and the media type of the response. It
// refuses what another parser could read differently.
//
// Rules: GraphQL over HTTP, September 2025; RFC 9110 section 12 for Accept.
package request

import "github.com/sluicegate/sluice/gateway/pipeline"

// A Request is one requested operation. Its slices alias the body, the URL or the
// scratch of the Decoder.
type Request struct {
	Query     []byte // text of the document, without escapes; nil without one
	Operation []byte // operationName, without escapes; empty without one
	Variables []byte // JSON of an object; nil without one
	Hash      []byte // of extensions.persistedQuery: 64 hexadecimal digits in lower case; nil without one
}

// A Decoder parses requests. Its zero value is ready for use. It must not be used
// concurrently. Its results are valid until its next use.
type Decoder struct {
	list     []Request
	scratch  []byte              // unescaped texts
	document *pipeline.Rejection // of a query beside a document ID of an unsupported kind; nil: there is none
}

// maxKept bounds the scratch that is kept between requests, in bytes.
const maxKept = 32 << 10

// Reset drops references to the last request.
func (d *Decoder) Reset() {
	clear(d.list)
	d.list, d.scratch = d.list[:0], d.scratch[:0]
	if cap(d.scratch) > maxKept {
		d.scratch = nil
	}
}

// member is a member of a request.
type member uint8

const (
	other member = iota
	query
	operationName
	variables
	extensions
	documentID
	storedID  // other names of documentId
	lookalike // a name that some servers read as one of the others
	garbled   // a name that is not percent-encoded UTF-8
)

var names = [...]string{query: "query", operationName: "operationName", variables: "variables", extensions: "extensions", documentID: "documentId", garbled: ""}

// storedIDs are names that servers accept for documentId, some of them for query
// as well.
var storedIDs = [...]string{"id", "doc_id"}

// known are the members that the gateway evaluates. They must not occur twice.
var known = [...]member{query, operationName, variables, extensions, documentID}

// twice returns the refusal of a repeated member.
func twice(m member) *pipeline.Rejection { return duplicate[m] }

var duplicate = func() (all [len(names)]*pipeline.Rejection) {
	for _, m := range known {
		all[m] = invalid("The request gives " + names[m] + " more than once.")
	}
	return all
}()

// complete refuses requests without an operation.
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
