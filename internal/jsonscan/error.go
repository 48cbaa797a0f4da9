package jsonscan

import "strconv"

// LessNesting is Expected of an Error for text that is nested too deep.
const LessNesting = "less nesting"

// An Error is the position at which a text is invalid JSON or nested too deep.
type Error struct {
	Offset   int    // in bytes, from 0
	Expected string // what should be there: `","`, "a value"
	End      bool   // the text ends there
}

// Error returns what was expected and the offset.
func (e *Error) Error() string {
	text := "expected " + e.Expected + " at byte " + strconv.Itoa(e.Offset)
	if e.End {
		text += ", where the text ends"
	}
	return text
}
