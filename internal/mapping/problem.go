package mapping

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
)

// A Problem is what is wrong with a script or a template. Line and Column begin with 1;
// they are 0 when the place is not known.
type Problem struct {
	Line, Column int
	Message      string // one line
}

// Error implements error. The text is one line.
func (p *Problem) Error() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message) }

// longestMessage bounds messages, which quote the script.
const longestMessage = 300

var unknownName = regexp.MustCompile(`unrecognised (?:function|method) '([a-z0-9_]+)'`)

// problem returns an error of the parser as a *Problem.
func problem(err error) *Problem {
	p := &Problem{}
	if at, ok := errors.AsType[*bloblang.ParseError](err); ok {
		p.Line, p.Column = at.Line, at.Column
	}
	p.Message = oneLine(err.Error())
	if name := unknownName.FindStringSubmatch(p.Message); name != nil {
		if why := removed()[name[1]]; why != "" {
			p.Message = name[0] + ": " + why
		}
	}
	return p
}

// oneLine returns a text without line breaks, bounded.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > longestMessage {
		return string(runes[:longestMessage]) + " ..."
	}
	return strings.TrimSpace(text)
}
