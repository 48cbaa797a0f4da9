package origin

import (
	"bytes"
	"strings"
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

// has tells whether an origin is in the set. It does not allocate.
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

// takes tells whether an origin in lower case is one of those that are meant.
// What the * stands for is part of a name or a port and not empty: it never
// reaches from the host into something else.
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

// allowsHeaders tells whether pages may send all of a list of headers, whose
// syntax is checked as well: the answer may repeat it.
func (c *CORS) allowsHeaders(list []byte) bool {
	for len(list) > 0 {
		var name []byte
		name, list, _ = bytes.Cut(list, comma)
		name = bytes.Trim(name, " \t")
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
			if !isTokenByte(c) {
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

// maxHeader is the longest name of a header that a preflight may ask for, in
// bytes.
const maxHeader = 128

var comma = []byte{','}

func isTokenByte(c byte) bool {
	return c-'a' < 26 || c-'0' < 10 || c != 0 && strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

const corsPrefix = "access-control-"

// withoutCORS takes the lines out of lines that tell browsers what pages may do.
func withoutCORS(lines []byte) []byte {
	kept, start := 0, 0 // lines[start:at] are to be moved to kept
	for at := 0; at < len(lines); {
		end := len(lines)
		if i := bytes.IndexByte(lines[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if isCORS(lines[at:end]) {
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

func isCORS(line []byte) bool {
	if len(line) < len(corsPrefix) || line[0]|0x20 != 'a' {
		return false
	}
	for i := range len(corsPrefix) {
		if c := line[i]; c != corsPrefix[i] && c|0x20 != corsPrefix[i] {
			return false
		}
	}
	return true
}
