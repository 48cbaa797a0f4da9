package limit

import (
	"bytes"
	"strconv"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Names are the names of the quota headers; those that are empty are not sent.
type Names struct {
	Limit     string // the quota's maximum; -1 unlimited, 0 none set
	Remaining string // calls left in this period
	Reset     string // unix seconds of the quota's renewal, 0 when it is not running
}

// Headers writes the quota headers.
type Headers struct {
	lines []header  // those that are sent
	first [256]bool // bytes that one of the names begins with
}

// A header is the text before one of the values: the end of the previous line, and
// the name.
type header struct {
	name  []byte
	begin []byte
	value int // of values
}

// NewHeaders returns the headers of these names, or nil when all names are empty.
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

// Answer returns the stage for upstream responses. It replaces headers of the same
// names.
func (h *Headers) Answer() pipeline.Stage { return answerHeaders{h} }

// Refusal returns the stage for error answers. Only refusals by the quota have the
// headers: others have not read it.
func (h *Headers) Refusal() pipeline.Stage { return refusalHeaders{h} }

type answerHeaders struct{ *Headers }

// Handle writes the headers if the call has a key.
func (h answerHeaders) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.Grant != nil {
		ex.Answer.Lines = h.append(h.without(ex.Answer.Lines), ex)
	}
	return pipeline.Next
}

type refusalHeaders struct{ *Headers }

// Handle writes the headers on a refusal by the quota.
func (h refusalHeaders) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.Grant != nil && ex.Rejection == quotaExceeded && !ex.RefusedByChild() {
		ex.Answer.Lines = h.append(ex.Answer.Lines, ex)
	}
	return pipeline.Next
}

// append appends the header lines. Unlimited quotas, and those that were not read,
// have 0 remaining and no renewal.
func (h *Headers) append(lines []byte, ex *pipeline.Exchange) []byte {
	values := [3]int64{ex.Grant.QuotaMax(), 0, 0}
	if quota := ex.Grant.Quota; quota >= 0 && ex.Charge.Whole {
		count := ex.Charge.Counts[quota]
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

// isOurs reports whether a line is one of the headers.
func (h *Headers) isOurs(line []byte) bool {
	for i := range h.lines {
		name := h.lines[i].name
		if n := len(name); len(line) > n && line[n] == ':' && bytes.EqualFold(line[:n], name) {
			return true
		}
	}
	return false
}
