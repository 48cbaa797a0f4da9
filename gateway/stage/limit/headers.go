package limit

import (
	"bytes"
	"strconv"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
)

// Names are the names of the headers about a key's limits; those that are empty are not
// sent.
type Names struct {
	Limit     string // the most calls: of the quota, or of the rate in its period; -1 unlimited
	Remaining string // calls left in this period
	Reset     string // unix seconds of the quota's renewal, or of when the rate next frees a call; 0 when none is due
}

// Headers writes the headers about a key's limits: those of its quota or, if it has none,
// of its rate (behaviour E.3). A key with neither has no headers.
type Headers struct {
	lines []header  // those that are sent
	first [256]bool // bytes that one of the names begins with
	rates bool      // only the rate counts, and is shown on refusals as well
}

// A header is the text before one of the values: the end of the previous line, and
// the name.
type header struct {
	name  []byte
	begin []byte
	value int // of values
}

// NewHeaders returns the headers of these names, or nil when all names are empty. With
// rates they are about the rate alone, and on every answer after it was counted.
func NewHeaders(names Names, rates bool) *Headers {
	if names == (Names{}) {
		return nil
	}
	h := &Headers{rates: rates}
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

// Refusal returns the stage for error answers. Headers about the quota are on refusals by
// it alone, as others have not read it.
func (h *Headers) Refusal() pipeline.Stage { return refusalHeaders{h} }

type answerHeaders struct{ *Headers }

// Handle writes the headers if the call has a key with limits.
func (h answerHeaders) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if values, ok := h.values(ex); ok {
		ex.Answer.Lines = h.append(h.without(ex.Answer.Lines), values)
	}
	return pipeline.Next
}

type refusalHeaders struct{ *Headers }

// Handle writes the headers on a refusal by the quota or, with rates, on every one.
func (h refusalHeaders) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.RefusedByChild() || !h.rates && ex.Rejection != quotaExceeded {
		return pipeline.Next
	}
	if values, ok := h.values(ex); ok {
		ex.Answer.Lines = h.append(ex.Answer.Lines, values)
	}
	return pipeline.Next
}

// values returns what the headers say, in the order of Names, and whether there is
// something to say. Unlimited quotas, and those that were not read, have 0 remaining and
// no renewal.
func (h *Headers) values(ex *pipeline.Exchange) (values [3]int64, ok bool) {
	g := ex.Grant
	switch {
	case g == nil:
		return values, false
	case h.rates || g.Quota < 0 && !g.Unlimited:
		if g.Rate < 0 || !rateCounted(ex) {
			return values, false
		}
		return shown(g.Limits()[g.Rate].Max, ex.Charge.Counts[g.Rate]), true
	case g.Quota < 0 || !ex.Charge.Whole:
		return [3]int64{g.QuotaMax(), 0, 0}, true
	}
	return shown(g.QuotaMax(), ex.Charge.Counts[g.Quota]), true
}

// rateCounted reports whether the counts of the exchange have what is left of the rate.
func rateCounted(ex *pipeline.Exchange) bool {
	return ex.Charge.Whole || ex.Charge.Rate > 0 || ex.Rejection == rateExceeded
}

func shown(most int64, count counter.Count) [3]int64 {
	return [3]int64{most, count.Remaining, (count.ResetAt + 999) / 1000} // a client that waits until then is not too early
}

// append appends the header lines.
func (h *Headers) append(lines []byte, values [3]int64) []byte {
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
