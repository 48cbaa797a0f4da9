package limit

import (
	"bytes"
	"strconv"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Names are the names of the headers that tell a client how its quota stands;
// an empty one is not sent.
type Names struct {
	Limit     string // the quota's maximum; -1 unlimited, 0 none set
	Remaining string // calls left in this period
	Reset     string // unix seconds of the quota's renewal, 0 when it is not running
}

// Headers writes the headers of a quota.
type Headers struct {
	lines []header  // those that are sent
	first [256]bool // bytes that one of the names begins with
}

// A header is what stands before one of the values: the end of the line before
// it, and its name.
type header struct {
	name  []byte
	begin []byte
	value int // of values
}

// NewHeaders returns what writes headers of these names, or nil when none of
// them is sent.
func NewHeaders(names Names) *Headers {
	if names == (Names{}) {
		return nil
	}
	h := &Headers{}
	for i, name := range [...]string{names.Limit, names.Remaining, names.Reset} {
		if name == "" {
			continue
		}
		begin := name + ": "
		if len(h.lines) > 0 {
			begin = "\r\n" + begin
		}
		h.lines = append(h.lines, header{name: []byte(name), begin: []byte(begin), value: i})
		h.first[name[0]], h.first[name[0]^0x20] = true, true // in either case
	}
	return h
}

// Answer returns the stage for answers of the upstream. Headers that the
// upstream sent under the same names are taken out.
func (h *Headers) Answer() pipeline.Stage { return answerHeaders{h} }

// Refusal returns the stage for refusals. Only one for the quota's sake tells
// how the quota stands: no other has asked it.
func (h *Headers) Refusal() pipeline.Stage { return refusalHeaders{h} }

type answerHeaders struct{ *Headers }

// Handle writes the headers, unless the call had no key.
func (h answerHeaders) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.Grant != nil {
		ex.Answer.Lines = h.append(h.without(ex.Answer.Lines), ex)
	}
	return pipeline.Next
}

type refusalHeaders struct{ *Headers }

// Handle writes the headers on a refusal for the quota's sake.
func (h refusalHeaders) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.Grant != nil && ex.Rejection == quotaExceeded && !ex.Relayed() {
		ex.Answer.Lines = h.append(ex.Answer.Lines, ex)
	}
	return pipeline.Next
}

// append adds the header lines. A quota without an end and one that was not
// asked show zero left and no renewal.
func (h *Headers) append(lines []byte, ex *pipeline.Exchange) []byte {
	values := [3]int64{ex.Grant.QuotaMax(), 0, 0}
	if quota := ex.Grant.Quota; quota >= 0 && ex.Counted {
		count := ex.Counts[quota]
		values[1] = count.Remaining
		values[2] = (count.ResetAt + 999) / 1000 // a client that waits until then is not too early
	}
	for i := range h.lines {
		lines = append(lines, h.lines[i].begin...)
		lines = strconv.AppendInt(lines, values[h.lines[i].value], 10)
	}
	return append(lines, "\r\n"...)
}

// without takes the lines of all three headers out of lines, in place and in
// one pass.
func (h *Headers) without(lines []byte) []byte {
	kept := 0
	for at := 0; at < len(lines); {
		end := bytes.IndexByte(lines[at:], '\n') + 1
		if end == 0 {
			end = len(lines) - at
		}
		line := lines[at : at+end]
		if !h.first[line[0]] || !h.isOurs(line) {
			if kept != at {
				copy(lines[kept:], line)
			}
			kept += end
		}
		at += end
	}
	return lines[:kept]
}

// isOurs tells whether a line is one of the headers.
func (h *Headers) isOurs(line []byte) bool {
	for i := range h.lines {
		name := h.lines[i].name
		if n := len(name); len(line) > n && line[n] == ':' && bytes.EqualFold(line[:n], name) {
			return true
		}
	}
	return false
}
