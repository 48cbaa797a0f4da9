package cors

import "github.com/sluicegate/sluice/internal/http1"

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
