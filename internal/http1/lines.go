package http1

import "bytes"

// RemoveLines removes the lines of the named headers, in upper or lower case, from
// header lines, in place, and returns what is left.
func RemoveLines(lines []byte, names ...string) []byte {
	return RemoveLinesFunc(lines, func(line []byte) bool { return isLineOf(line, names) })
}

// RemoveLinesFunc removes each line for which remove returns true from header
// lines, in place, and returns what is left. remove gets a line with its end.
func RemoveLinesFunc(lines []byte, remove func(line []byte) bool) []byte {
	kept, start := 0, 0 // lines[start:at] are to be moved to kept
	for at := 0; at < len(lines); {
		end := lineEnd(lines, at)
		if remove(lines[at:end]) {
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

// HasLine reports whether one of the named headers is among header lines.
func HasLine(lines []byte, names ...string) bool {
	for at := 0; at < len(lines); {
		end := lineEnd(lines, at)
		if isLineOf(lines[at:end], names) {
			return true
		}
		at = end
	}
	return false
}

// lineEnd returns where the line that begins at an offset ends.
func lineEnd(lines []byte, at int) int {
	if i := bytes.IndexByte(lines[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(lines)
}

func isLineOf(line []byte, names []string) bool {
	for _, name := range names {
		if len(line) > len(name) && line[len(name)] == ':' && EqualFold(line[:len(name)], name) {
			return true
		}
	}
	return false
}

// Connection collects the values of a message's Connection lines, which name
// header lines that are for this connection only (RFC 9110 section 7.6.1). The
// values alias the message.
type Connection struct {
	values [4][]byte
	n      int
	names  bool // something besides close and keep-alive is named

	Close   bool // the message is the last one on its connection
	TooMany bool // there were more than four lines; the rest was not read
}

// Add adds the value of one line.
func (l *Connection) Add(value []byte) {
	if l.n == len(l.values) {
		l.TooMany = true
		return
	}
	l.values[l.n] = value
	l.n++
	for len(value) > 0 {
		var name []byte
		name, value = CutElement(value)
		switch {
		case EqualFold(name, "close"):
			l.Close = true
		case len(name) > 0 && !EqualFold(name, "keep-alive"):
			l.names = true
		}
	}
}

// Holds reports whether a header is named.
func (l *Connection) Holds(name []byte) bool {
	for _, list := range l.values[:l.n] {
		if Lists(list, name) {
			return true
		}
	}
	return false
}

// Strip removes the lines of the named headers from lines, in place.
func (l *Connection) Strip(lines []byte) []byte {
	if !l.names {
		return lines
	}
	return RemoveLinesFunc(lines, func(line []byte) bool {
		colon := bytes.IndexByte(line, ':')
		return colon >= 0 && l.Holds(line[:colon])
	})
}
