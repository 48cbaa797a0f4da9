package match

// JoinOptions says how a remainder is joined to a target.
type JoinOptions struct {
	// DisableStripSlash uses the target's path as it is written when the
	// remainder is empty or a lone slash; otherwise slashes at its end go.
	DisableStripSlash bool
}

// Join appends to dst the path and query to ask the target for, and returns the
// extended slice. Rest is what is left of the original path, escapes and all;
// query is the client's, without the question mark.
//
// Slashes at the end of the target's path and at the beginning of rest become
// one. When nothing is left of rest but those, the target's path stands alone,
// without slashes at its end, or as "/" when it has nothing else. The target's
// query comes first, then the client's.
func (t *Target) Join(dst, rest, query []byte, opts JoinOptions) []byte {
	start := len(dst)
	if opts.DisableStripSlash && (len(rest) == 0 || len(rest) == 1 && rest[0] == '/') {
		dst = append(dst, t.path...)
	} else {
		dst = append(dst, t.base...)
		for len(rest) > 0 && rest[0] == '/' {
			rest = rest[1:]
		}
		if len(rest) > 0 {
			dst = append(dst, '/')
			dst = append(dst, rest...)
		}
	}
	if len(dst) == start {
		dst = append(dst, '/')
	}
	return t.appendQuery(dst, query)
}

func (t *Target) appendQuery(dst, query []byte) []byte {
	mark := byte('?')
	if len(t.query) > 0 {
		dst = append(dst, mark)
		dst = append(dst, t.query...)
		mark = '&'
	}
	if len(query) > 0 {
		dst = append(dst, mark)
		dst = append(dst, query...)
	}
	return dst
}
