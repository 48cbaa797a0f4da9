package pipeline

import "bytes"

// RemoveLines takes the lines of headers out of header lines, in place, and
// returns what is left. Upper and lower case are the same.
func RemoveLines(lines []byte, names []string) []byte {
	kept, start := 0, 0 // lines[start:at] are to be moved to kept
	for at := 0; at < len(lines); {
		end := lineEnd(lines, at)
		if isOf(lines[at:end], names) {
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

// HasLine tells whether one of the headers is among header lines.
func HasLine(lines []byte, names []string) bool {
	for at := 0; at < len(lines); {
		end := lineEnd(lines, at)
		if isOf(lines[at:end], names) {
			return true
		}
		at = end
	}
	return false
}

// lineEnd returns where the line ends that begins at a place.
func lineEnd(lines []byte, at int) int {
	if i := bytes.IndexByte(lines[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(lines)
}

// isOf tells whether a line is that of one of the headers.
func isOf(line []byte, names []string) bool {
	for _, name := range names {
		if len(line) > len(name) && line[len(name)] == ':' && equalFold(line[:len(name)], name) {
			return true
		}
	}
	return false
}

// equalFold compares two names of one length.
func equalFold(a []byte, b string) bool {
	for i, c := range a {
		if c != b[i] && (c|0x20 != b[i]|0x20 || c|0x20-'a' >= 26) {
			return false
		}
	}
	return true
}
