package graphql

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// doubtful returns the offset of the first character that ends a line, or the text,
// for some parsers only; -1 if there is none. A parser that ends a comment there
// would run another document than the one that was checked.
func doubtful(text []byte) int {
	for i, c := range text {
		switch {
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c == 0x7f:
			return i
		case c == 0xc2 && i+1 < len(text) && text[i+1] == 0x85, // U+0085
			c == 0xe2 && (bytes.HasPrefix(text[i:], lineSeparator) || bytes.HasPrefix(text[i:], paragraphSeparator)):
			return i
		}
	}
	return -1
}

var lineSeparator, paragraphSeparator = []byte("\u2028"), []byte("\u2029")

// doubt returns the error for such a character.
func doubt(doc *syntax.Document, at int) *syntax.Error {
	r, _ := utf8.DecodeRune(doc.Source[at:])
	return &syntax.Error{
		Message:   fmt.Sprintf("Syntax Error: Invalid character: %U. In a string, write it as \"\\u%04X\".", r, r),
		Locations: []syntax.Location{doc.Location(uint32(at))},
	}
}
