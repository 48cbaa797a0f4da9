package cors

import (
	"strings"

	"github.com/sluicegate/sluice/internal/http1"
)

// An originSet holds web origins.
type originSet struct {
	written []string // as the definition has them
	exact   map[string]bool
	open    []openOrigin
	all     bool
}

// An openOrigin is an origin with a part left open.
type openOrigin struct{ before, behind string }

// maxOrigin is the longest origin that is looked at, in bytes: names of hosts
// have at most 253.
const maxOrigin = 300

func newOriginSet(list []string) originSet {
	s := originSet{written: list, exact: make(map[string]bool)}
	for _, text := range list {
		before, behind, open := strings.Cut(strings.ToLower(text), "*")
		switch {
		case text == "*":
			s.all = true
		case open:
			s.open = append(s.open, openOrigin{before, behind})
		default:
			s.exact[before] = true
		}
	}
	return s
}

// has reports whether an origin is in the set. It does not allocate.
func (s *originSet) has(sender []byte) bool {
	if len(sender) == 0 || len(sender) > maxOrigin {
		return false
	}
	if s.all {
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

// allowsHeaders reports whether pages may send all headers of a list. It checks the
// syntax of the list too, as the answer may repeat it.
func (c *Rules) allowsHeaders(list []byte) bool {
	for len(list) > 0 {
		var name []byte
		name, list = http1.CutElement(list)
		if len(name) == 0 {
			continue
		}
		if len(name) > maxHeader {
			return false
		}
		var room [maxHeader]byte
		lowered := room[:len(name)]
		for i, c := range name {
			if c-'A' < 26 {
				c |= 0x20
			}
			if !http1.IsTokenByte(c) {
				return false
			}
			lowered[i] = c
		}
		if !c.every && !c.headers[string(lowered)] {
			return false
		}
	}
	return true
}

// maxHeader is the longest name of a header in a preflight, in bytes.
const maxHeader = 128

// isCORS reports whether a header line belongs to the CORS protocol.
func isCORS(line []byte) bool { return http1.HasPrefix(line, "access-control-") }
