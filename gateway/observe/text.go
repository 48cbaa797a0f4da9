package observe

import "unicode/utf8"

// plainText holds the bytes that need no escape in a JSON string.
var plainText = func() (table [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// appendText appends text and a closing quote, as a JSON string that is safe on a
// terminal: control characters, U+2028 and U+2029 are escaped, and what is not UTF-8
// is replaced.
func appendText[T string | []byte](b []byte, text T) []byte {
	start := 0
	for i := 0; i < len(text); {
		if plainText[text[i]] {
			i++
			continue
		}
		b = append(b, text[start:i]...)
		n := 1
		if text[i] < utf8.RuneSelf {
			b = appendEscaped(b, rune(text[i]))
		} else {
			b, n = appendRune(b, text[i:])
		}
		i += n
		start = i
	}
	b = append(b, text[start:]...)
	return append(b, '"')
}

// appendRune appends the first character of text, which is not ASCII, and returns its
// length in bytes.
func appendRune[T string | []byte](b []byte, text T) ([]byte, int) {
	var buf [utf8.UTFMax]byte
	r, n := utf8.DecodeRune(buf[:copy(buf[:], text)])
	if r < 0xa0 || r == '\u2028' || r == '\u2029' {
		return appendEscaped(b, r), n
	}
	return utf8.AppendRune(b, r), n // RuneError for bytes that are not UTF-8
}

func appendEscaped(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	if r == '"' || r == '\\' {
		return append(b, '\\', byte(r))
	}
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
