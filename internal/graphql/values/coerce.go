package values

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// value checks the value that comes next against a type. Its recursion is as
// deep as the value is nested: at most MaxDepth.
func (c *Checker) value(ref schema.TypeRef) {
	kind := c.scan.Kind()
	if kind == jsonscan.Null {
		at := c.scan.Offset()
		c.scan.Value()
		if ref.IsNonNull() {
			c.invalid(at, c.nullMessage(ref))
		}
		return
	}
	ref = ref.Nullable()
	if !ref.IsList() {
		c.named(ref.Type())
		return
	}
	if kind == jsonscan.Array {
		c.list(ref.Inner())
		return
	}
	c.value(ref.Inner()) // one value stands for a list of it
}

func (c *Checker) list(of schema.TypeRef) {
	c.path = append(c.path, step{})
	top := len(c.path) - 1
	for c.scan.Array(); c.scan.Element() && !c.more; c.path[top].index++ {
		c.value(of)
	}
	c.path = c.path[:top]
}

func (c *Checker) named(t schema.TypeID) {
	switch c.schema.Types[t].Kind {
	case schema.InputObject:
		c.object(t)
	case schema.Enum:
		c.enum(t)
	default:
		c.scalar(t)
	}
}

// An object is an input object that is being checked.
type object struct {
	typ   schema.TypeID
	of    schema.Span // its fields
	start int         // in src
	base  int         // where its bits begin in seen
	first int         // its first problem

	given    uint32 // fields that are given
	required uint32 // and those of them that have to be
	lowest   uint32 // the first of those given, in the order of the type
	isNull   bool   // the value of that is null
}

// object checks the input object that comes next. What is wrong is reported in
// the order of the type's fields, not in that of the text.
func (c *Checker) object(t schema.TypeID) {
	kind := c.scan.Kind()
	o := object{typ: t, of: c.schema.Types[t].Inputs, start: c.scan.Offset(), base: len(c.seen), first: len(c.problems)}
	if kind != jsonscan.Object {
		c.scan.Value()
		c.invalid(o.start, c.objectMessage(t))
		return
	}
	o.lowest = o.of.Hi
	c.clearSeen(int(o.of.Hi - o.of.Lo))
	for c.scan.Object(); c.scan.Member() && !c.more; {
		c.member(&o)
	}
	c.whole(&o)
	c.sort(o.first)
	c.seen = c.seen[:o.base]
}

// clearSeen makes room for a bit for each of n fields.
func (c *Checker) clearSeen(n int) {
	for range (n + 63) / 64 {
		c.seen = append(c.seen, 0)
	}
}

// member checks the member of an input object whose value comes next.
func (c *Checker) member(o *object) {
	from := len(c.problems)
	i, ok := c.schema.InputNamed(o.of, c.decoded(c.scan.Name()))
	if !ok {
		c.invalid(o.start, c.unknownMessage(c.scan.Name(), o.typ))
		c.rank(from, len(c.schema.Inputs))
		c.scan.Value()
		return
	}
	input := &c.schema.Inputs[i]
	if c.again(o, uint32(i)) {
		c.invalid(o.start, `Field "`+input.Name+`" is given more than once.`)
		c.scan.Value()
	} else {
		c.note(o, uint32(i), input.Required())
		c.path = append(c.path, step{field: input.Name})
		c.inputs++
		c.value(input.Type)
		c.inputs--
		c.path = c.path[:len(c.path)-1]
	}
	c.rank(from, i)
}

// again reports whether a field was given before, and records it.
func (c *Checker) again(o *object, row uint32) bool {
	bit := row - o.of.Lo
	word, mask := &c.seen[o.base+int(bit>>6)], uint64(1)<<(bit&63)
	before := *word&mask != 0
	*word |= mask
	return before
}

// note counts a given field.
func (c *Checker) note(o *object, row uint32, required bool) {
	o.given++
	if required {
		o.required++
	}
	if row < o.lowest {
		o.lowest, o.isNull = row, c.scan.Kind() == jsonscan.Null
	}
}

// whole checks the rules that need all fields of an input object.
func (c *Checker) whole(o *object) {
	if c.more {
		return
	}
	if o.required < c.requiredOf(o.typ, o.of) {
		c.missing(o)
	}
	if c.schema.Types[o.typ].OneOf {
		c.oneOf(o)
	}
}

// requiredOf returns how many fields of an input object have to be given. It is
// kept for the rest of the check: many small objects of a large type would
// otherwise cost as much as large ones.
func (c *Checker) requiredOf(t schema.TypeID, of schema.Span) uint32 {
	n, ok := c.required[t]
	if !ok {
		for i := of.Lo; i < of.Hi; i++ {
			if c.schema.Inputs[i].Required() {
				n++
			}
		}
		if c.required == nil {
			c.required = make(map[schema.TypeID]uint32)
		}
		c.required[t] = n
	}
	return n
}

func (c *Checker) missing(o *object) {
	for i := o.of.Lo; i < o.of.Hi && !c.more; i++ {
		input, from := &c.schema.Inputs[i], len(c.problems)
		if input.Required() && !c.again(o, i) {
			c.invalid(o.start, c.missingMessage(input))
			c.rank(from, int(i))
		}
	}
}

func (c *Checker) oneOf(o *object) {
	from := len(c.problems)
	if o.given != 1 {
		c.invalid(o.start, c.oneOfMessage(o.typ))
	}
	if o.given > 0 && o.isNull {
		name := c.schema.Inputs[o.lowest].Name
		c.path = append(c.path, step{field: name})
		c.invalidValue("null", `Field "`+name+`" must be non-null.`)
		c.path = c.path[:len(c.path)-1]
	}
	c.rank(from, len(c.schema.Inputs)+1)
}
