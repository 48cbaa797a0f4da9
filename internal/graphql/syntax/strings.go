package syntax

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// StringValue returns what a StringValue or BlockStringValue stands for: without
// quotes, with its escapes replaced, and a block string without its common
// indentation. Of any other value it is the text as written.
func (d *Document) StringValue(v *Value) string {
	switch v.Kind {
	case StringValue:
		raw := d.Source[v.Text.Start+1 : v.Text.End-1]
		if bytes.IndexByte(raw, '\\') < 0 {
			return string(raw)
		}
		return string(appendUnescaped(nil, raw))
	case BlockStringValue:
		return string(appendBlock(nil, d.Source[v.Text.Start+3:v.Text.End-3]))
	default:
		return d.Text(v.Text)
	}
}

// AppendString appends to dst what StringValue returns.
func (d *Document) AppendString(dst []byte, v *Value) []byte {
	switch v.Kind {
	case StringValue:
		return appendUnescaped(dst, d.Source[v.Text.Start+1:v.Text.End-1])
	case BlockStringValue:
		return appendBlock(dst, d.Source[v.Text.Start+3:v.Text.End-3])
	default:
		return append(dst, d.Bytes(v.Text)...)
	}
}

// appendUnescaped appends a string's content, whose escapes have been checked.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		r, size, _ := readEscape(raw, i)
		dst = utf8.AppendRune(dst, r)
		raw = raw[i+size:]
	}
}

// readEscape reads the escape sequence at src[i], which is a backslash. When it
// is none, size is how much of it to quote, in UTF-16 code units.
func readEscape(src []byte, i int) (r rune, size int, ok bool) {
	if i+1 >= len(src) {
		return 0, 2, false
	}
	switch c := src[i+1]; c {
	case '"', '\\', '/':
		return rune(c), 2, true
	case 'b':
		return '\b', 2, true
	case 'f':
		return '\f', 2, true
	case 'n':
		return '\n', 2, true
	case 'r':
		return '\r', 2, true
	case 't':
		return '\t', 2, true
	case 'u':
		if i+2 < len(src) && src[i+2] == '{' {
			return readBraced(src[i:])
		}
		return readUnicode(src[i:])
	default:
		return 0, 2, false
	}
}

// readBraced reads \u{…} with one to eight digits.
func readBraced(src []byte) (r rune, size int, ok bool) {
	const maxSize = len(`\u{00000000}`)
	point := int32(0)
	for size = len(`\u{`); size < maxSize; {
		if size >= len(src) {
			return 0, size + 1, false
		}
		c := src[size]
		size++
		if c == '}' {
			return point, size, size > len(`\u{}`) && utf8.ValidRune(point)
		}
		digit := hexDigit(c)
		point = point<<4 | digit
		if digit < 0 || point < 0 {
			break
		}
	}
	return 0, size, false
}

// readUnicode reads \uXXXX, or two of them that make a surrogate pair.
func readUnicode(src []byte) (r rune, size int, ok bool) {
	first := readHex4(src, 2)
	if utf8.ValidRune(first) {
		return first, 6, true
	}
	if first >= 0 && len(src) >= 8 && src[6] == '\\' && src[7] == 'u' {
		if r := utf16.DecodeRune(first, readHex4(src, 8)); r != utf8.RuneError {
			return r, 12, true
		}
	}
	return 0, 6, false
}

// readHex4 reads four hexadecimal digits, -1 when there are not as many.
func readHex4(src []byte, i int) rune {
	if i+4 > len(src) {
		return -1
	}
	return hexDigit(src[i])<<12 | hexDigit(src[i+1])<<8 | hexDigit(src[i+2])<<4 | hexDigit(src[i+3])
}

// hexDigit returns a digit's value, or -1, which stays negative when or-ed.
func hexDigit(c byte) int32 {
	switch {
	case c >= '0' && c <= '9':
		return int32(c - '0')
	case c >= 'A' && c <= 'F':
		return int32(c - 'A' + 10)
	case c >= 'a' && c <= 'f':
		return int32(c - 'a' + 10)
	default:
		return -1
	}
}

// appendBlock appends a block string's content as the specification's
// BlockStringValue algorithm has it: without the indentation that all lines but
// the first share, and without blank lines at either end.
func appendBlock(dst, raw []byte) []byte {
	indent, first, last := measureBlock(raw)
	n := 0
	for rest, more := raw, true; more && n <= last; n++ {
		var line []byte
		line, rest, more = cutLine(rest)
		if n < first {
			continue
		}
		if n > first {
			dst = append(dst, '\n')
		}
		if n > 0 {
			line = line[min(indent, len(line)):]
		}
		dst = appendBlockLine(dst, line)
	}
	return dst
}

// measureBlock returns the common indentation of all lines but the first, and
// which lines are the first and the last that are not blank; last is -1 when
// all are.
func measureBlock(raw []byte) (indent, first, last int) {
	indent, first, last = len(raw), 0, -1
	n := 0
	for rest, more := raw, true; more; n++ {
		var line []byte
		line, rest, more = cutLine(rest)
		white := 0
		for white < len(line) && (line[white] == ' ' || line[white] == '\t') {
			white++
		}
		if white == len(line) {
			continue
		}
		if last < 0 {
			first = n
		}
		last = n
		if n > 0 {
			indent = min(indent, white)
		}
	}
	return indent, first, last
}

// cutLine returns the first line of text and what follows its end, which is
// \n, \r\n or \r; more is false when there is no line after it.
func cutLine(text []byte) (line, rest []byte, more bool) {
	i := bytes.IndexAny(text, "\r\n")
	if i < 0 {
		return text, nil, false
	}
	if text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
		return text[:i], text[i+2:], true
	}
	return text[:i], text[i+1:], true
}

// appendBlockLine appends a line with \""" replaced.
func appendBlockLine(dst, line []byte) []byte {
	for {
		before, after, escaped := bytes.Cut(line, []byte(`\"""`))
		dst = append(dst, before...)
		if !escaped {
			return dst
		}
		dst = append(dst, `"""`...)
		line = after
	}
}
