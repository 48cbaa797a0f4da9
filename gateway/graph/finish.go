package graph

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// emptied matches what stands in selection sets whose fields are all skipped. Within a
// string of the response the quotes would be escaped.
var emptied = regexp.MustCompile(`,"` + emptySet + `":"[A-Za-z0-9_]*"|"` + emptySet + `":"[A-Za-z0-9_]*",?`)

// finish makes the response of the library that of the gateway: errors that say what
// failed, each once and with its path.
func (r *run) finish(p *planned, out []byte) []byte {
	if p.text.empties {
		out = emptied.ReplaceAll(out, nil)
	}
	if !bytes.HasPrefix(out, []byte(`{"errors":`)) {
		return out
	}
	var answer struct {
		Errors []responseError `json:"errors"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal(out, &answer) != nil {
		return out
	}
	kept := answer.Errors[:0]
	seen := make(map[string]bool)
	for _, e := range answer.Errors {
		r.say(&e)
		at := pathText(e.Path)
		if seen[at+"\x00"+e.Message] || isNullError(e.Message) && nullIsSaid(kept, at) {
			continue
		}
		seen[at+"\x00"+e.Message] = true
		kept = append(kept, e)
	}
	answer.Errors = kept
	if answer.Data == nil {
		answer.Data = json.RawMessage("null")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(answer) != nil {
		return out
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

type responseError struct {
	Message    string          `json:"message"`
	Path       []any           `json:"path,omitempty"`
	Extensions json.RawMessage `json:"extensions,omitempty"`
}

// say puts the cause of an error in place of how the library came to it.
func (r *run) say(e *responseError) {
	if isMisfit(e.Message) {
		if causes := r.causes(fieldPath(e.Path)); len(causes) > 0 {
			e.Message = causes
		}
	}
	if !strings.Contains(e.Message, "Subgraph") {
		return
	}
	e.Message = strings.ReplaceAll(e.Message, "Subgraph", "data source")
	e.Extensions = nil
}

const nullError = "Cannot return null for non-nullable field"

func isNullError(message string) bool { return strings.HasPrefix(message, nullError) }

// nullIsSaid reports whether another error says why there is no value at a path.
func nullIsSaid(errs []responseError, at string) bool {
	for _, e := range errs {
		if other := pathText(e.Path); !isNullError(e.Message) && (other == at || strings.HasPrefix(other, at+"\x00")) {
			return true
		}
	}
	return false
}

func pathText(path []any) string {
	var b strings.Builder
	for i, one := range path {
		if i > 0 {
			b.WriteByte(0)
		}
		text, _ := json.Marshal(one)
		b.Write(text)
	}
	return b.String()
}

// fieldPath returns a path without the indices of lists.
func fieldPath(path []any) string {
	var names []string
	for _, one := range path {
		if name, ok := one.(string); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}
