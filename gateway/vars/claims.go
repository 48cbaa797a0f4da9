package vars

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// maxNesting is how deeply nested claims of a token are read.
const maxNesting = 64

// A claim is a member of the verified token's claims, by its exact name.
type claim string

// append appends a string as it is, and any other value as JSON.
func (c claim) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	if ex.Claims == nil {
		return dst
	}
	s := jsonscan.New(ex.Claims, maxNesting)
	for s.Object(); s.Member(); {
		if !jsonscan.Equal(s.Name(), string(c)) {
			s.Value()
			continue
		}
		v := s.Value()
		if v.Kind == jsonscan.Invalid {
			return dst
		}
		return appendJSON(dst, v.Raw)
	}
	return dst
}

// appendJSON appends a string decoded, and any other value as JSON.
func appendJSON(dst, raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return append(dst, raw...)
	}
	start := len(dst)
	text, err := jsonscan.Unescape(dst, raw[1:len(raw)-1])
	if err != nil { // a lone half of a surrogate pair
		return dst[:start]
	}
	return text
}

// A captured is a value that a trigger of a rewrite matched, by its reference.
type captured string

func (c captured) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	return append(dst, ex.Captures.Get(string(c))...)
}

// appendTrace appends the id of the trace that the request is part of.
func appendTrace(dst []byte, ex *pipeline.Exchange) []byte {
	if !ex.Trace.Known() {
		return dst
	}
	return append(dst, ex.Trace.ID[:]...)
}
