package observe

import "unicode/utf8"

// plainText tells which bytes stand for themselves in a JSON string.
var plainText = func() (table [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// appendText appends text and the quote that ends it, for a JSON string that is
// safe to show on a terminal: control characters of either range and what some
// readers take for a line's end are escaped, and what is not UTF-8 is replaced.
func appendText[T string | []byte](b []byte, text T) []byte {
	start := 0
	for i := plainStart(text); i < len(text); {
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

// plainStart returns how many bytes text surely begins with that stand for
// themselves. It looks at eight at once, which nearly always settles it.
func plainStart[T string | []byte](text T) int {
	const (
		ones  = 0x0101010101010101
		highs = ones << 7
	)
	i := 0
	for ; i+8 <= len(text); i += 8 {
		w := uint64(text[i]) | uint64(text[i+1])<<8 | uint64(text[i+2])<<16 | uint64(text[i+3])<<24 |
			uint64(text[i+4])<<32 | uint64(text[i+5])<<40 | uint64(text[i+6])<<48 | uint64(text[i+7])<<56
		quote, slash, del := w^ones*'"', w^ones*'\\', w^ones*0x7f
		odd := (w-ones*' ')&^w | (quote-ones)&^quote | (slash-ones)&^slash | (del-ones)&^del | w
		if odd&highs != 0 {
			break
		}
	}
	return i
}

// appendRune appends the first character of text, which is beyond ASCII, and
// returns its length.
func appendRune[T string | []byte](b []byte, text T) ([]byte, int) {
	var buf [utf8.UTFMax]byte
	r, n := utf8.DecodeRune(buf[:copy(buf[:], text)])
	if r < 0xa0 || r == '\u2028' || r == '\u2029' {
		return appendEscaped(b, r), n
	}
	return utf8.AppendRune(b, r), n // RuneError for what is not UTF-8
}

func appendEscaped(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	if r == '"' || r == '\\' {
		return append(b, '\\', byte(r))
	}
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
