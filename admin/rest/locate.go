package rest

import (
	"bytes"
	"encoding/json"
	"slices"
)

// wrappers are the members under which an object may be sent, and the names under which
// objects in an array say who they are.
var (
	wrappers = []string{"api_definition", "session"}
	idNames  = []string{"api_id", "id", "key_hash"}
)

// offset returns where a path leads in valid JSON: to the name of the member or to the
// element, or to the closest one around it that is there.
func offset(text []byte, path []segment) (at int) {
	w := walker{text: text}
	start := w.space(0)
	if len(path) == 0 || text[start] != '{' {
		return start
	}
	if _, _, found := w.child(start, path[0]); !found {
		for _, name := range wrappers {
			if _, value, wrapped := w.child(start, segment{name, -1}); wrapped && text[value] == '{' {
				start = value
				break
			}
		}
	}
	at = start
	for _, step := range path {
		name, value, found := w.child(start, step)
		if !found {
			break
		}
		at, start = name, value
	}
	return at
}

// A walker walks through valid JSON.
type walker struct{ text []byte }

// child returns where a member or an element of the value at start begins, with its name,
// and where its value begins.
func (w *walker) child(start int, step segment) (name, value int, found bool) {
	switch {
	case start >= len(w.text):
	case w.text[start] == '{' && step.index < 0:
		w.each(start, func(from, at int) bool {
			if w.says(from, step.name) {
				name, value, found = from, at, true // the last one of several counts
			}
			return true
		})
	case w.text[start] == '[':
		n := 0
		w.each(start, func(from, at int) bool {
			if found = n == step.index || step.index < 0 && w.isCalled(at, step.name); found {
				name, value = from, at
			}
			n++
			return !found
		})
	}
	return name, value, found
}

// each calls do with every member or element of the object or array at start: where it
// begins, with its name, and where its value does. It ends when do returns false.
func (w *walker) each(start int, do func(from, value int) bool) {
	object := w.text[start] == '{'
	at := w.space(start + 1)
	for at < len(w.text) && w.text[at] != '}' && w.text[at] != ']' {
		from := at
		if object {
			at = w.space(w.space(w.end(at)) + 1) // behind the colon
		}
		if !do(from, at) {
			return
		}
		if at = w.space(w.end(at)); at < len(w.text) && w.text[at] == ',' {
			at = w.space(at + 1)
		}
	}
}

// isCalled reports whether the object at a place has an id.
func (w *walker) isCalled(at int, id string) (called bool) {
	if w.text[at] != '{' {
		return false
	}
	w.each(at, func(from, value int) bool {
		called = called || slices.ContainsFunc(idNames, func(name string) bool { return w.says(from, name) }) && w.says(value, id)
		return true
	})
	return called
}

// says reports whether the string at a place is a text.
func (w *walker) says(at int, text string) bool {
	raw := w.text[at:w.end(at)]
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:len(raw)-1]) == text
	}
	var said string
	return json.Unmarshal(raw, &said) == nil && said == text
}

// space returns the index of the first byte from at on that is no white space.
func (w *walker) space(at int) int {
	for at < len(w.text) && (w.text[at] == ' ' || w.text[at] == '\n' || w.text[at] == '\t' || w.text[at] == '\r') {
		at++
	}
	return at
}

// end returns the index behind the value at a place.
func (w *walker) end(at int) int {
	depth := 0
	for at < len(w.text) {
		switch w.text[at] {
		case '"':
			if at = w.stringEnd(at); depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return at + max(depth+1, 0)
			}
		case ',', ' ', '\n', '\t', '\r', ':':
			if depth == 0 {
				return at
			}
		}
		at++
	}
	return at
}

// stringEnd returns the index behind the string at a place.
func (w *walker) stringEnd(at int) int {
	for at++; at < len(w.text); at++ {
		switch w.text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(w.text)
}
