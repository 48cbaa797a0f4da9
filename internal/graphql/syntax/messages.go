package syntax

import (
	"fmt"
	"unicode/utf8"
)

// maxQuoted bounds, in bytes, what a message repeats of a document.
const maxQuoted = 200

// described is a token as messages have it: its kind, and for those that have
// one, its value.
func (p *parser) described(t token) string {
	what := kindNames[t.kind]
	var value string
	switch t.kind {
	case name, integer, float:
		value = string(p.src[t.start:t.end])
	case text, blockText:
		v := stringValue(t)
		value = p.doc.StringValue(&v)
	default:
		return what
	}
	return what + ` "` + quoted(value) + `"`
}

// quoted is what a message repeats of a document's text.
func quoted(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return s[:wholeRunes(s, maxQuoted)] + "…"
}

// wholeRunes returns the end of the last character that ends within most bytes.
func wholeRunes(s string, most int) int {
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return most
}

// printed is the character at i as messages have it: quoted if it is printable
// ASCII, else by its number.
func (p *parser) printed(i int) string {
	if i >= len(p.src) {
		return kindNames[endOfFile]
	}
	r, _ := utf8.DecodeRune(p.src[i:])
	switch {
	case r == '"':
		return `'"'`
	case r >= ' ' && r <= '~':
		return `"` + string(r) + `"`
	default:
		return fmt.Sprintf("U+%04X", r)
	}
}

// escapeFault is the message about an invalid escape sequence at src[i]. It quotes
// size UTF-16 code units.
func escapeFault(src []byte, i, size int) string {
	kind := "character"
	if i+1 < len(src) && src[i+1] == 'u' {
		kind = "Unicode"
	}
	return "Invalid " + kind + ` escape sequence: "` + firstUnits(src[i:], size) + `".`
}

// firstUnits returns the first n UTF-16 code units of text. One that is half of
// a character becomes the replacement character.
func firstUnits(text []byte, n int) string {
	end := 0
	for end < len(text) && n > 0 {
		r, size := utf8.DecodeRune(text[end:])
		n -= unitsOf(r)
		if n < 0 {
			return string(text[:end]) + string(utf8.RuneError)
		}
		end += size
	}
	return string(text[:end])
}
