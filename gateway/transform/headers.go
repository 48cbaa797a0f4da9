package transform

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// request changes the headers of calls.
type request struct{ *rules }

// Handle changes what goes upstream.
func (r request) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	h := r.of(ex)
	if h == nil {
		return pipeline.Next
	}
	out := &ex.Outgoing
	if len(out.Drop) == 0 {
		out.Drop = h.names
	} else {
		for _, name := range h.names {
			out.AlsoDrop(name)
		}
	}
	if len(out.Extra) > 0 {
		out.Extra = without(out.Extra, h.names)
	}
	out.Extra = h.append(out.Extra, ex)
	return pipeline.Next
}

// Explain tells which headers are changed.
func (r request) Explain(ex *pipeline.Exchange, f *pipeline.Finding) { r.explain(ex, f) }

// response changes the headers of answers.
type response struct{ *rules }

// Handle changes the answer.
func (r response) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if h := r.of(ex); h != nil {
		a := ex.Answer
		a.Lines = h.append(without(a.Lines, h.names), ex)
	}
	return pipeline.Next
}

// Explain tells which headers of an answer would be changed.
func (r response) Explain(ex *pipeline.Exchange, f *pipeline.Finding) { r.explain(ex, f) }

// without takes the lines of headers out of lines, in place. names are canonical.
func without(lines []byte, names []string) []byte {
	kept, start := 0, 0 // lines[start:at] are to be moved to kept
	for at := 0; at < len(lines); {
		end := len(lines)
		if i := bytes.IndexByte(lines[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if isOf(lines[at:end], names) {
			kept += copy(lines[kept:], lines[start:at])
			start = end
		}
		at = end
	}
	if start == 0 {
		return lines
	}
	return lines[:kept+copy(lines[kept:], lines[start:])]
}

// isOf tells whether a line is that of one of the headers.
func isOf(line []byte, names []string) bool {
	for _, name := range names {
		if len(line) > len(name) && line[len(name)] == ':' && line[0]|0x20 == name[0]|0x20 && equalFold(line[:len(name)], name) {
			return true
		}
	}
	return false
}

// equalFold compares two names of one length.
func equalFold(a []byte, b string) bool {
	for i, c := range a {
		if c != b[i] && (c|0x20 != b[i]|0x20 || c|0x20-'a' >= 26) {
			return false
		}
	}
	return true
}
