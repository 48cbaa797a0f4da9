package match

import "bytes"

// IsPlain tells whether a decoded path is read alike by all upstreams, as far as
// where its segments end: it has no encoded slash, no empty segment, and no
// semicolon.
func IsPlain(path []byte) bool {
	return bytes.IndexByte(path, '%') < 0 && bytes.IndexByte(path, ';') < 0 && !bytes.Contains(path, twoSlashes)
}

var twoSlashes = []byte("//")

// AppendPlain appends a decoded path as the least careful of upstreams reads it:
// with encoded slashes as slashes, several slashes as one, and without what
// follows a semicolon in a segment.
func AppendPlain(dst, path []byte) []byte {
	start := len(dst)
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == ';':
			for i+1 < len(path) && path[i+1] != '/' && !isSlash(path[i+1:]) {
				i++
			}
			continue
		case isSlash(path[i:]):
			c = '/'
			i += 2
		}
		if n := len(dst); c == '/' && n > start && dst[n-1] == '/' {
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// isSlash tells whether a decoded path begins with an encoded slash or backslash.
func isSlash(path []byte) bool {
	return len(path) >= 3 && path[0] == '%' && (string(path[1:3]) == "2F" || string(path[1:3]) == "5C")
}

// FindStrict is Find for what nobody is to get around by the way that a path is
// written: the first entry decides that takes the call as it is, or as the least
// careful of upstreams reads it (see [AppendPlain]). room is written to and comes
// back, perhaps grown.
func (e *Endpoints[T]) FindStrict(method, path, full, room []byte) (value T, found bool, grown []byte) {
	at := e.first(method, path, full, len(e.entries))
	if !IsPlain(path) || !IsPlain(full) {
		room = AppendPlain(room[:0], full)
		end := len(room)
		room = AppendPlain(room, path)
		at = e.first(method, room[end:], room[:end], at)
	}
	if at == len(e.entries) {
		return value, false, room
	}
	return e.entries[at].value, true, room
}

// first returns the index of the first entry that takes a path, with the listen
// path or without, or before when none of those in front of it does.
func (e *Endpoints[T]) first(method, path, full []byte, before int) int {
	before = e.find(method, path, before)
	if len(full) > 0 {
		before = e.find(method, full, before)
	}
	return before
}
