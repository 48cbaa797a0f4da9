package match

import "strings"

// Origins is a set of web origins, such as https://app.example. A * stands for part of a
// name or for a port.
type Origins struct {
	Written []string // as the definition has them
	exact   map[string]bool
	open    []openOrigin
	All     bool // every origin is in it
}

// An openOrigin is an origin with a part left open.
type openOrigin struct{ before, behind string }

// maxOrigin is the longest origin that is looked at, in bytes: names of hosts
// have at most 253.
const maxOrigin = 300

// CompileOrigins returns the set of a list; "*" is every origin.
func CompileOrigins(list []string) Origins {
	s := Origins{Written: list, exact: make(map[string]bool)}
	for _, text := range list {
		before, behind, open := strings.Cut(strings.ToLower(text), "*")
		switch {
		case text == "*":
			s.All = true
		case open:
			s.open = append(s.open, openOrigin{before, behind})
		default:
			s.exact[before] = true
		}
	}
	return s
}

// Has reports whether an origin is in the set. It does not allocate.
func (s *Origins) Has(sender []byte) bool {
	if len(sender) == 0 || len(sender) > maxOrigin {
		return false
	}
	if s.All {
		return true
	}
	if s.exact[string(sender)] { // as browsers write it
		return true
	}
	var room [maxOrigin]byte
	lowered := room[:len(sender)]
	for i, c := range sender {
		if c-'A' < 26 {
			c |= 0x20
		}
		lowered[i] = c
	}
	if s.exact[string(lowered)] {
		return true
	}
	for i := range s.open {
		if s.open[i].takes(lowered) {
			return true
		}
	}
	return false
}

// takes reports whether a lower-case origin matches. The * matches a part of a name
// or of a port that is not empty: it never extends beyond the host.
func (o *openOrigin) takes(sender []byte) bool {
	if len(sender) <= len(o.before)+len(o.behind) || string(sender[:len(o.before)]) != o.before ||
		string(sender[len(sender)-len(o.behind):]) != o.behind {
		return false
	}
	for _, c := range sender[len(o.before) : len(sender)-len(o.behind)] {
		if c-'a' >= 26 && c-'0' >= 10 && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return true
}
