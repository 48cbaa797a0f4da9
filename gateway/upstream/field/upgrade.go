package field

import "bytes"

// MayBeSpoken tells whether all protocols of an Upgrade header are something else
// than HTTP, and may be written in a line.
func MayBeSpoken(list []byte) bool {
	for len(list) > 0 {
		var protocol []byte
		protocol, list = CutElement(list)
		name, version, versioned := bytes.Cut(protocol, []byte{'/'})
		switch {
		case !IsToken(name) || versioned && !IsToken(version):
			return false
		case EqualFold(name, "h2c"), EqualFold(name, "h2"), EqualFold(name, "http"), EqualFold(name, "tls"):
			return false
		}
	}
	return true
}
