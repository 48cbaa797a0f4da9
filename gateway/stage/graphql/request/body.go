package request

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// maxDepth bounds the nesting of objects and arrays in a body: that of variables
// and a few levels around them.
const maxDepth = 80

// Body reads a body: one request, or an array of requests if batches are allowed.
// The slice belongs to the Decoder.
func (d *Decoder) Body(body []byte, batchMax int) (list []Request, batch bool, r *pipeline.Rejection) {
	d.Reset()
	s := jsonscan.New(body, maxDepth)
	switch s.Kind() {
	case jsonscan.Object:
		r = d.one(&s)
	case jsonscan.Array:
		if batchMax <= 0 {
			r = batchOff
			s.Value()
			break
		}
		if r = d.batch(&s, batchMax); r != nil && s.Err() == nil {
			return nil, true, r
		}
		batch = true
	case jsonscan.Invalid:
		if s.Offset() == len(body) {
			return nil, false, Empty
		}
		s.Value()
	default:
		r = notObject
		s.Value()
	}
	s.End()
	if fault, ok := s.Fault(); ok { // first, because other errors may follow from it
		return nil, batch, malformed(&fault)
	}
	if r != nil {
		return nil, batch, r
	}
	return d.list, batch, nil
}

// Text reads a body that is the text of a document. The Request belongs to the Decoder.
func (d *Decoder) Text(body []byte) (*Request, *pipeline.Rejection) {
	d.Reset()
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return nil, Empty
	case !utf8.Valid(body):
		return nil, notUTF8
	}
	d.list = append(d.list, Request{Query: body})
	return &d.list[0], nil
}

func malformed(fault *jsonscan.Error) *pipeline.Rejection {
	if fault.Expected == jsonscan.LessNesting {
		return invalid("The request body is nested in more than " + strconv.Itoa(maxDepth) + " objects and arrays.")
	}
	return invalid("The request body is invalid JSON: " + fault.Error() + ".")
}

// batch reads an array of requests. It stops at the first that is refused.
func (d *Decoder) batch(s *jsonscan.Scanner, most int) *pipeline.Rejection {
	for s.Array(); s.Element(); {
		if len(d.list) == most {
			return invalid("A batch may have at most " + strconv.Itoa(most) + " operations.")
		}
		if s.Kind() != jsonscan.Object {
			return inBatch(notObject, len(d.list))
		}
		if r := d.one(s); r != nil {
			return inBatch(r, len(d.list)-1)
		}
	}
	if len(d.list) == 0 {
		return batchEmpty
	}
	return nil
}

// inBatch adds the index of a batch's operation to a refusal.
func inBatch(r *pipeline.Rejection, i int) *pipeline.Rejection {
	return Refusal(r.Reason, 400, "Operation "+strconv.Itoa(i+1)+" of the batch: "+r.Message)
}

// one reads the next object. Outside a batch it reads to the end even after an
// error.
func (d *Decoder) one(s *jsonscan.Scanner) *pipeline.Rejection {
	d.list = append(d.list, Request{})
	r := &d.list[len(d.list)-1]
	d.document = nil
	var seen [len(names)]bool
	var refused *pipeline.Rejection
	for s.Object(); s.Member(); {
		m := memberOf(s.Name())
		v := s.Value()
		switch {
		case refused != nil || m == other:
		case m == lookalike:
			refused = lookalikeMember
		case seen[m]:
			refused = twice(m)
		default:
			seen[m] = m != storedID
			refused = d.take(r, m, v)
		}
	}
	if refused != nil {
		return refused
	}
	return d.complete(r)
}

// memberOf returns the member that has a name.
func memberOf(name []byte) member {
	switch string(name) { // the spelling of nearly all clients
	case "query":
		return query
	case "operationName":
		return operationName
	case "variables":
		return variables
	case "extensions":
		return extensions
	}
	for _, m := range known {
		switch {
		case jsonscan.Equal(name, names[m]):
			return m
		case jsonscan.EqualFold(name, names[m]):
			return lookalike
		}
	}
	for _, id := range storedIDs {
		if jsonscan.Equal(name, id) {
			return storedID
		}
	}
	return other
}

// take stores the value of a member.
func (d *Decoder) take(r *Request, m member, v jsonscan.Value) *pipeline.Rejection {
	switch {
	case v.Kind == jsonscan.Invalid:
		return nil // the scanner reports the fault
	case v.Kind == jsonscan.Null:
		if m == query {
			return queryType
		}
		return nil
	}
	switch m {
	case query:
		if v.Kind != jsonscan.String {
			return queryType
		}
		return d.text(&r.Query, v)
	case operationName:
		if v.Kind != jsonscan.String {
			return operationType
		}
		return d.text(&r.Operation, v)
	case variables:
		if v.Kind != jsonscan.Object {
			return variablesType
		}
		r.Variables = v.Raw
	case extensions:
		return readExtensions(r, v)
	case documentID:
		if v.Kind != jsonscan.String {
			return documentType
		}
		d.document = documentBesideQuery
	case storedID:
		if v.Kind == jsonscan.String { // other values are no document ID
			d.document = idBesideQuery
		}
	}
	return nil
}

// text stores the unescaped text of a string in to.
func (d *Decoder) text(to *[]byte, v jsonscan.Value) *pipeline.Rejection {
	raw := v.Text()
	if bytes.IndexByte(raw, '\\') < 0 {
		*to = raw
		return nil
	}
	start := len(d.scratch)
	all, err := jsonscan.Unescape(slices.Grow(d.scratch, len(raw)), raw)
	if err != nil {
		return halfPair
	}
	d.scratch = all
	*to = all[start:]
	return nil
}

// readExtensions reads the hash of a persisted query. The gateway ignores other
// extensions.
func readExtensions(r *Request, v jsonscan.Value) *pipeline.Rejection {
	if v.Kind != jsonscan.Object {
		return extensionsType
	}
	const name = "persistedQuery"
	s := jsonscan.New(v.Raw, maxDepth)
	found := false
	for s.Object(); s.Member(); {
		is := jsonscan.EqualFold(s.Name(), name)
		exact := is && jsonscan.Equal(s.Name(), name)
		v := s.Value()
		switch {
		case !is:
		case !exact || found:
			return persistedType
		case v.Kind == jsonscan.Null:
			found = true
		default:
			found = true
			if !readPersisted(r, v) {
				return persistedType
			}
		}
	}
	return nil
}

// readPersisted reads { version: 1, sha256Hash: "…" }. Another kind of hash
// beside it is refused, because the gateway would not verify it against the text.
func readPersisted(r *Request, v jsonscan.Value) bool {
	if v.Kind != jsonscan.Object {
		return false
	}
	version := false
	s := jsonscan.New(v.Raw, maxDepth)
	for s.Object(); s.Member(); {
		isVersion, isHash := jsonscan.EqualFold(s.Name(), "version"), jsonscan.EqualFold(s.Name(), "sha256Hash")
		v := s.Value()
		switch {
		case isVersion:
			if version || string(v.Raw) != "1" {
				return false
			}
			version = true
		case isHash:
			if r.Hash != nil || v.Kind != jsonscan.String || !isHashText(v.Text()) {
				return false
			}
			r.Hash = v.Text()
		default:
			return false
		}
	}
	return version && r.Hash != nil
}

func isHashText(b []byte) bool {
	if len(b) != 64 {
		return false
	}
	for _, c := range b {
		if c-'0' > 9 && c-'a' > 5 {
			return false
		}
	}
	return true
}
