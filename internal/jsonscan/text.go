package jsonscan

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Unescape appends the unescaped text between a string's quotes, which a Scanner has
// accepted. A lone surrogate is an *Error with its offset in raw.
func Unescape(dst, raw []byte) ([]byte, error) {
	for at := 0; at < len(raw); {
		n := bytes.IndexByte(raw[at:], '\\')
		if n < 0 {
			return append(dst, raw[at:]...), nil
		}
		dst = append(dst, raw[at:at+n]...)
		at += n
		r, size := unit(raw[at:])
		if r < 0 {
			return dst, &Error{Offset: at, Expected: "both halves of a surrogate pair"}
		}
		dst = utf8.AppendRune(dst, r)
		at += size
	}
	return dst, nil
}

// half is the result of unit for a lone surrogate.
const half = -1

// unit decodes the first character of a text between quotes and returns it with its
// length in bytes.
func unit(raw []byte) (rune, int) {
	if raw[0] != '\\' {
		return utf8.DecodeRune(raw)
	}
	if raw[1] != 'u' {
		return escaped[raw[1]], 2
	}
	r, _ := hex4(raw[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		low, _ := hex4(raw[8:])
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			return full, 12
		}
	}
	return half, 6
}

// escaped are the characters of short escape sequences.
var escaped = [256]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// hex4 reads the four hexadecimal digits at the beginning of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20-'a' < 6:
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Equal reports whether the text between the quotes of a name or string equals want
// when it is unescaped.
func Equal(raw []byte, want string) bool {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == want
	}
	for len(raw) > 0 {
		r, size := unit(raw)
		w, n := utf8.DecodeRuneInString(want)
		if n == 0 || r != w || (w == utf8.RuneError && n == 1) {
			return false
		}
		raw, want = raw[size:], want[n:]
	}
	return want == ""
}

// EqualFold is Equal for a want of ASCII letters that ignores case and all from a
// zero byte on. Some JSON parsers match member names without case, or end names at
// that byte.
func EqualFold(raw []byte, want string) bool {
	for len(raw) > 0 {
		r, size := unit(raw)
		if r == 0 {
			break
		}
		if want == "" || lower(r) != lower(rune(want[0])) {
			return false
		}
		raw, want = raw[size:], want[1:]
	}
	return want == ""
}

// lower returns the lower-case ASCII letter of all that Unicode folds to one,
// and other characters as they are.
func lower(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r == '\u017F': // long s
		return 's'
	case r == '\u212A': // kelvin sign
		return 'k'
	default:
		return r
	}
}

// AppendString appends text as a JSON string. Invalid UTF-8 becomes the replacement
// character.
func AppendString(dst, text []byte) []byte {
	dst = append(dst, '"')
	for at := 0; at < len(text); {
		c := text[at]
		if plain[c] {
			n := plainRun(text[at:])
			dst = append(dst, text[at:at+n]...)
			at += n
			continue
		}
		if c < utf8.RuneSelf {
			dst = appendEscape(dst, c)
			at++
			continue
		}
		r, size := utf8.DecodeRune(text[at:])
		dst = utf8.AppendRune(dst, r)
		at += size
	}
	return append(dst, '"')
}

func plainRun(text []byte) int {
	for i, c := range text {
		if !plain[c] {
			return i
		}
	}
	return len(text)
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	default:
		const digits = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
	}
}
