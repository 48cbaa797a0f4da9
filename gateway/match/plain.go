package match

import "bytes"

// IsPlain reports whether all upstreams split a decoded path into the same segments: it
// has no encoded slash, no empty segment, and no
// semicolon.
func IsPlain(path []byte) bool {
	return bytes.IndexByte(path, '%') < 0 && bytes.IndexByte(path, ';') < 0 && !bytes.Contains(path, twoSlashes)
}

var twoSlashes = []byte("//")

// AppendPlain appends a decoded path as the most lenient upstream reads it: with encoded slashes as slashes, several slashes as one, and without what
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

// isSlash reports whether a decoded path begins with an encoded slash or backslash.
func isSlash(path []byte) bool {
	return len(path) >= 3 && path[0] == '%' && (string(path[1:3]) == "2F" || string(path[1:3]) == "5C")
}

// FindStrict is Find for rules that clients must not evade by the spelling of a path:
// the first entry decides that matches the path as it is, or as the most lenient
// upstream reads it (see [AppendPlain]). It overwrites buf and returns it, possibly
// grown.
func (e *Endpoints[T]) FindStrict(method, path, full, buf []byte) (value T, found bool, grown []byte) {
	at := e.first(method, path, full, len(e.entries))
	if !IsPlain(path) || !IsPlain(full) {
		buf = AppendPlain(buf[:0], full)
		end := len(buf)
		buf = AppendPlain(buf, path)
		at = e.first(method, buf[end:], buf[:end], at)
	}
	if at == len(e.entries) {
		return value, false, buf
	}
	return e.entries[at].value, true, buf
}

// first returns the index of the first entry before the index before that matches a
// path, with the listen path or without, or before when none does.
func (e *Endpoints[T]) first(method, path, full []byte, before int) int {
	before = e.find(method, path, before)
	if len(full) > 0 {
		before = e.find(method, full, before)
	}
	return before
}
