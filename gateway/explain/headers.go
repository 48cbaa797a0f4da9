package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Header is one header line of a description.
type Header struct{ Name, Value string }

// Headers are the header lines of a description in their order. In JSON they are
// a list of lines such as "Name: value", or an object from names to a value or
// a list of values.
type Headers []Header

// UnmarshalJSON reads either form.
func (h *Headers) UnmarshalJSON(data []byte) error {
	var lines []string
	if json.Unmarshal(data, &lines) == nil {
		return h.fromLines(lines)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return fmt.Errorf(`headers: must be a list of lines such as "Name: value", or an object from names to values`)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var one string
		var several []string
		switch {
		case json.Unmarshal(members[name], &one) == nil:
			several = []string{one}
		case json.Unmarshal(members[name], &several) != nil:
			return fmt.Errorf("headers.%.40s: must be a text or a list of texts", name)
		}
		for _, value := range several {
			*h = append(*h, Header{name, value})
		}
	}
	return nil
}

func (h *Headers) fromLines(lines []string) error {
	for i, line := range lines {
		name, value, found := strings.Cut(line, ":")
		if !found {
			return fmt.Errorf(`headers[%d]: must be a line such as "Name: value"`, i)
		}
		*h = append(*h, Header{name, strings.Trim(value, " \t")})
	}
	return nil
}

// MarshalJSON writes a list of lines.
func (h Headers) MarshalJSON() ([]byte, error) {
	lines := make([]string, len(h))
	for i, one := range h {
		lines[i] = one.Name + ": " + one.Value
	}
	return json.Marshal(lines)
}

// has reports whether there is a line of a name.
func (h Headers) has(name string) bool {
	return slices.ContainsFunc(h, func(one Header) bool { return strings.EqualFold(one.Name, name) })
}
