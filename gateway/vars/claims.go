package vars

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// maxNesting is how deep the claims of a token may nest to be looked at.
const maxNesting = 64

// A claim is a member of the verified token's claims by its exact name.
type claim string

// append appends a string as it is and anything else as JSON.
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

// appendJSON appends a string as the text that it is and anything else as JSON.
func appendJSON(dst, raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return append(dst, raw...)
	}
	start := len(dst)
	text, err := jsonscan.Unescape(dst, raw[1:len(raw)-1])
	if err != nil { // half of a surrogate pair stands for no text
		return dst[:start]
	}
	return text
}

// A captured is what a trigger of a rewrite found, by its reference.
type captured string

func (c captured) append(dst []byte, ex *pipeline.Exchange, _ [][]byte) []byte {
	return append(dst, ex.Captures.Get(string(c))...)
}

// appendTrace appends the id of the trace that the caller says the request is
// part of, by W3C Trace Context. What is no such id is left out.
func appendTrace(dst []byte, ex *pipeline.Exchange) []byte {
	const from, to = len("00-"), len("00-") + 32
	parent := ex.Call.Header("traceparent")
	if len(parent) < len("00-00000000000000000000000000000000-0000000000000000-00") || parent[from-1] != '-' || parent[to] != '-' {
		return dst
	}
	id, some := parent[from:to], false
	for _, c := range id {
		if c-'0' >= 10 && c-'a' >= 6 {
			return dst
		}
		some = some || c != '0'
	}
	if !some {
		return dst
	}
	return append(dst, id...)
}
