package values

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// tooMany replaces all problems beyond MaxErrors.
const tooMany = "Too many errors processing variables, error limit reached. Execution aborted."

// say notes a problem.
func (c *Checker) say(where syntax.Location, message string) {
	if len(c.problems) == MaxErrors-1 {
		c.more = true
		return
	}
	c.problems = append(c.problems, problem{message: message, where: where})
}

// invalid notes what is wrong with the value that starts somewhere in src, at
// the current path.
func (c *Checker) invalid(start int, why string) {
	c.invalidValue(inspect(c.src[start:]), why)
}

func (c *Checker) invalidValue(value, why string) {
	text := `Variable "$` + c.variable.Name + `" got invalid value ` + value
	if len(c.path) > 0 {
		text += ` at "` + c.variable.Name + c.pathText() + `"`
	}
	c.say(c.variable.Location, text+"; "+why)
}

func (c *Checker) pathText() string {
	var b []byte
	for _, s := range c.path {
		if s.field != "" {
			b = append(append(b, '.'), s.field...)
			continue
		}
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(s.index), 10)
		b = append(b, ']')
	}
	return string(b)
}

// rank gives the problems from one on a place among their siblings.
func (c *Checker) rank(from, rank int) {
	for i := from; i < len(c.problems); i++ {
		c.problems[i].rank = rank
	}
}

// sort puts the problems of an object, those from one on, in order.
func (c *Checker) sort(from int) {
	slices.SortStableFunc(c.problems[from:], func(a, b problem) int { return cmp.Compare(a.rank, b.rank) })
}

// errors returns the problems, nil when there are none.
func (c *Checker) errors() []*syntax.Error {
	if len(c.problems) == 0 {
		return nil
	}
	errs := make([]*syntax.Error, 0, len(c.problems)+1)
	for _, p := range c.problems {
		e := &syntax.Error{Message: p.message}
		if p.where.Line > 0 {
			e.Locations = []syntax.Location{p.where}
		}
		errs = append(errs, e)
	}
	if c.more {
		errs = append(errs, &syntax.Error{Message: tooMany})
	}
	return errs
}

// secret reports whether a type at the current place is known to the schema alone:
// the operation names the types of its variables and no others.
func (c *Checker) secret() bool { return c.hidden && c.inputs > 0 }

func (c *Checker) typeName(t schema.TypeID) string { return `"` + c.schema.Types[t].Name + `"` }

func (c *Checker) nullMessage(ref schema.TypeRef) string {
	if c.secret() {
		return "Expected a value not to be null."
	}
	return `Expected non-nullable type "` + c.schema.RefString(ref) + `" not to be null.`
}

func (c *Checker) objectMessage(t schema.TypeID) string {
	if c.secret() {
		return "Expected an object."
	}
	return "Expected type " + c.typeName(t) + " to be an object."
}

func (c *Checker) unknownMessage(raw []byte, t schema.TypeID) string {
	text := `Field "` + decodedText(raw) + `" is not defined`
	if c.secret() {
		return text + "."
	}
	return text + " by type " + c.typeName(t) + "."
}

func (c *Checker) missingMessage(input *schema.Input) string {
	if c.hidden {
		return "A required field was not provided."
	}
	return `Field "` + input.Name + `" of required type "` + c.schema.RefString(input.Type) + `" was not provided.`
}

func (c *Checker) oneOfMessage(t schema.TypeID) string {
	if c.secret() {
		return "Exactly one key must be specified."
	}
	return "Exactly one key must be specified for OneOf type " + c.typeName(t) + "."
}

func (c *Checker) enumKindMessage(t schema.TypeID, raw []byte) string {
	text := " cannot represent non-string value: " + inspect(raw) + "."
	if c.secret() {
		return "An enum" + text
	}
	return "Enum " + c.typeName(t) + text
}

func (c *Checker) enumValueMessage(t schema.TypeID, raw []byte) string {
	text := `Value "` + decodedText(raw) + `" does not exist in `
	if c.secret() {
		return text + "the enum."
	}
	return text + c.typeName(t) + " enum."
}

// decodedText returns a name or string for a message: unescaped and at most maxEcho
// long.
func decodedText(raw []byte) string {
	text, err := jsonscan.Unescape(nil, raw)
	if err != nil {
		text = raw
	}
	return clip(text)
}
