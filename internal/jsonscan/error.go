package jsonscan

import "strconv"

// LessNesting is what is expected where a text is nested too deep.
const LessNesting = "less nesting"

// An Error is a place where a text is no JSON, or is nested too deep.
type Error struct {
	Offset   int    // in bytes, from 0
	Expected string // what should be there: `","`, "a value"
	End      bool   // the text ends there
}

// Error says what was expected and where.
func (e *Error) Error() string {
	text := "expected " + e.Expected + " at byte " + strconv.Itoa(e.Offset)
	if e.End {
		text += ", where the text ends"
	}
	return text
}
