package validate

import (
	"math"
	"slices"
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// costs adds up a Cost, in the order in which an operation is gone through.
type costs struct {
	fields uint64 // of the open list without its inner lists
	lists  []costList
	sizes  []sizeVariable
}

// A sizing is the size of a list by the arguments of its field.
type sizing struct {
	known  bool
	least  uint64
	lo, hi uint32 // in costs.sizes
}

// An openList is what closing a list needs.
type openList struct {
	index  int    // in costs.lists
	around uint64 // costs.fields of what is around it
}

func (c *costs) reset() { c.fields, c.lists, c.sizes = 0, c.lists[:0], c.sizes[:0] }

// field counts a field.
func (c *costs) field() { c.fields = add(c.fields, 1) }

// open counts a list field. What is counted until close belongs to it.
func (c *costs) open(size sizing) openList {
	c.field()
	list := openList{len(c.lists), c.fields}
	c.lists = append(c.lists, costList{least: size.least, lo: size.lo, hi: size.hi})
	c.fields = 0
	return list
}

// close ends the list that was opened last. It is false when there are too many
// that depend on variables.
func (c *costs) close(open openList) bool {
	list := &c.lists[open.index]
	if len(c.lists) == open.index+1 && list.lo == list.hi {
		c.fields = add(open.around, times(c.fields, list.least))
		c.lists = c.lists[:open.index]
		return true
	}
	list.fields, list.inner = c.fields, uint32(len(c.lists)-open.index-1)
	c.fields = open.around
	return len(c.lists) <= maxVariableLists
}

// retained returns the sum in memory of its own.
func (c *costs) retained() Cost {
	total := Cost{Fixed: c.fields}
	if len(c.lists) > 0 {
		total.lists, total.sizes = slices.Clone(c.lists), slices.Clone(c.sizes)
	}
	return total
}

// sizing returns the size of a list by the arguments of its field.
func (g *gatherer) sizing(sel *syntax.Selection) (size sizing) {
	size.lo = uint32(len(g.cost.sizes))
	size.hi = size.lo
	for i := sel.Arguments.Lo; i < sel.Arguments.Hi; i++ {
		arg := &g.doc.Arguments[i]
		if !slices.Contains(g.o.SizeArguments, string(g.doc.Bytes(arg.Name))) {
			continue
		}
		val := &g.doc.Values[arg.Value]
		switch val.Kind {
		case syntax.IntValue:
			if n := g.literalSize(val); n > 0 {
				size.known, size.least = true, max(size.least, n)
			}
		case syntax.VariableValue:
			n, ok := g.variables.get(g.names.number(variableName(g.doc, val)))
			if !ok {
				g.invalid("variable", val.Text)
				return size
			}
			size.known = true
			g.cost.sizes = append(g.cost.sizes, sizeVariable{variable: n, assumed: g.assumed(n)})
			size.hi++
		}
	}
	return size
}

// literalSize returns the size in a literal, 0 if it is no size. Sizes that
// overflow are the largest number.
func (g *gatherer) literalSize(val *syntax.Value) uint64 {
	text := g.doc.Bytes(val.Text)
	if text[0] == '-' {
		return 0
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return math.MaxUint64
	}
	return n
}

// assumed returns the size of a list if its variable has no value: the
// variable's default. Where null can take the place of the default, it is not
// less than what is assumed of all lists.
func (g *gatherer) assumed(variable uint32) uint32 {
	def := &g.doc.Variables[g.firstVariable+variable]
	size := uint64(g.o.ListSize)
	if def.Default != syntax.None && g.doc.Values[def.Default].Kind == syntax.IntValue {
		if n := g.literalSize(&g.doc.Values[def.Default]); n > size || n > 0 && g.doc.Types[def.Type].Kind == syntax.NonNullType {
			size = n
		}
	}
	return uint32(min(size, math.MaxUint32))
}
