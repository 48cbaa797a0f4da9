// Package values checks the variables of a request against the types that the
// operation declares.
//
// Rules: GraphQL specification, September 2025, sections 3 and 6.1.2. Messages
// are those of the reference implementation. Unlike that, the package refuses a
// repeated member, which JSON parsers read differently.
package values

import (
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

const (
	// MaxErrors bounds the errors of a check. The last one reports that there are
	// more.
	MaxErrors = 20

	// MaxDepth bounds the nesting of lists and objects, including the object of all
	// variables.
	MaxDepth = 64
)

// Options control how variables are checked.
type Options struct {
	// Hidden removes names of the schema from messages, except those in the
	// operation.
	Hidden bool
}

// A Checker checks variables. Its zero value is ready for use. It reuses its scratch
// and must not be used concurrently.
type Checker struct {
	schema *schema.Schema
	hidden bool

	vars  []validate.Variable
	table table
	found []place // by variable

	src      []byte // the value of the variable that is checked
	scan     jsonscan.Scanner
	variable *validate.Variable
	path     []step
	inputs   int      // input objects around the value: from one on, types are named by the schema alone
	seen     []uint64 // a bit for each field of the input objects around the value
	text     []byte   // a name or string without its escapes
	required map[schema.TypeID]uint32

	problems []problem
	more     bool // there are more problems than are kept
}

// A place is where a value lies in the variables; Hi is 0 without one.
type place struct{ lo, hi int }

// A step is a field, or the index of an element when the field is "".
type step struct {
	field string
	index int
}

// A problem is an error, with the place among its siblings that it is due to.
type problem struct {
	message string
	where   syntax.Location
	rank    int
}

// Check returns what is wrong with json, the variables that a client sent, for
// an operation that has vars; nil when nothing is. Empty and null json hold no
// variables. Those that the operation has not are ignored.
//
// sizes is as long as vars. Check sets each to the value of the variable when
// that is given and an integer from 0 on, else to -1.
//
// It allocates nothing when the variables are right.
func (c *Checker) Check(s *schema.Schema, vars []validate.Variable, json []byte, sizes []int64, o Options) []*syntax.Error {
	c.begin(s, vars, o)
	defer c.end()
	if c.locate(json, sizes) {
		for i := range vars {
			if c.coerce(i, json, sizes); c.more {
				break
			}
		}
	}
	return c.errors()
}

func (c *Checker) begin(s *schema.Schema, vars []validate.Variable, o Options) {
	c.schema, c.vars, c.hidden = s, vars, o.Hidden
	c.found = append(c.found[:0], make([]place, len(vars))...)
	c.path, c.seen, c.problems = c.path[:0], c.seen[:0], c.problems[:0]
	c.inputs, c.more = 0, false
	if len(c.required) > 0 {
		clear(c.required)
	}
}

// maxKept bounds the scratch that is kept between checks, in elements of each
// kind.
const maxKept = 4 << 10

// end lets go of what belongs to the request.
func (c *Checker) end() {
	clear(c.problems)
	c.schema, c.vars, c.variable, c.src, c.scan = nil, nil, nil, nil, jsonscan.Scanner{}
	if cap(c.found)+cap(c.seen)+cap(c.text)+len(c.table.slots) > maxKept {
		c.found, c.seen, c.text, c.table = nil, nil, nil, table{}
	}
}

// locate finds the value of each variable. It returns false when the variables
// cannot be read at all.
func (c *Checker) locate(json []byte, sizes []int64) bool {
	for i := range sizes {
		sizes[i] = -1
	}
	s := jsonscan.New(json, MaxDepth)
	switch s.Kind() {
	case jsonscan.Null:
		s.Value()
	case jsonscan.Object:
		c.table.fill(c.vars)
		for s.Object(); s.Member(); {
			name := c.decoded(s.Name())
			v := s.Value()
			c.place(name, v)
		}
	case jsonscan.Invalid:
		if s.Offset() == len(json) {
			return true
		}
		s.Value()
	default:
		c.say(syntax.Location{}, "Variables must be given as an object with a member for each variable.")
		return false
	}
	s.End()
	if fault, ok := s.Fault(); ok {
		c.malformed(&fault)
		return false
	}
	return true
}

func (c *Checker) malformed(fault *jsonscan.Error) {
	if fault.Expected == jsonscan.LessNesting {
		c.say(syntax.Location{}, "Variables may be nested in at most "+strconv.Itoa(MaxDepth)+" lists and objects.")
		return
	}
	c.say(syntax.Location{}, "Variables are invalid JSON: "+fault.Error()+".")
}

func (c *Checker) place(name []byte, v jsonscan.Value) {
	i := c.table.index(c.vars, name)
	if i < 0 {
		return
	}
	at := &c.found[i]
	if at.hi > 0 {
		c.say(c.vars[i].Location, `Variable "$`+c.vars[i].Name+`" is given more than once.`)
	}
	*at = place{v.Offset, v.Offset + len(v.Raw)}
}

// coerce checks the value of one variable.
func (c *Checker) coerce(i int, json []byte, sizes []int64) {
	v, at := &c.vars[i], c.found[i]
	if at.hi == 0 {
		if v.Type.IsNonNull() && !v.HasDefault {
			c.say(v.Location, `Variable "$`+v.Name+`" of required type "`+c.schema.RefString(v.Type)+`" was not provided.`)
		}
		return
	}
	c.variable, c.src = v, json[at.lo:at.hi]
	if c.src[0] == 'n' && v.Type.IsNonNull() {
		c.say(v.Location, `Variable "$`+v.Name+`" of non-null type "`+c.schema.RefString(v.Type)+`" must not be null.`)
		return
	}
	c.scan = jsonscan.New(c.src, MaxDepth)
	c.value(v.Type)
	sizes[i] = size(c.src)
}

// decoded returns a name or string without its escapes; nil when it stands for
// no text. It is good until the next call.
func (c *Checker) decoded(raw []byte) []byte {
	text, err := jsonscan.Unescape(c.text[:0], raw)
	c.text = text[:0]
	if err != nil {
		return nil
	}
	return text
}
