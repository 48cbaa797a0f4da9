package validate

import "math"

// Cost is what an operation can cost at most: one for each field but
// __typename, times the sizes of the lists that it is in. What is selected
// beneath __schema and __type costs nothing. It never changes.
type Cost struct {
	Fixed uint64 // of the fields that are in no list whose size is a variable

	lists []costList // those whose size is a variable, and those around them; in document order
	sizes []sizeVariable
}

// A costList is a list whose size, or that of a list in it, is a variable.
type costList struct {
	fields uint64 // cost of its fields that are in no inner costList
	least  uint64 // the size, or what it is at least
	inner  uint32 // how many of the next lists are in it
	lo, hi uint32 // in Cost.sizes: the largest of them is the size
}

// A sizeVariable is a variable that a list's size depends on.
type sizeVariable struct {
	variable uint32 // index in Facts.Variables
	assumed  uint32 // the size if the variable has none
}

// At returns the cost when variables have sizes, by their index in
// Facts.Variables. What is less than 1 is no size: the default of the variable
// or what is assumed of lists counts, as it does for variables beyond the slice.
// Costs too large to count are the largest number.
func (c *Cost) At(sizes []int64) uint64 {
	return add(c.Fixed, c.sum(0, uint32(len(c.lists)), sizes))
}

// sum returns the cost of lists [lo, hi).
func (c *Cost) sum(lo, hi uint32, sizes []int64) (total uint64) {
	for lo < hi {
		list := &c.lists[lo]
		end := lo + 1 + list.inner
		fields := add(list.fields, c.sum(lo+1, end, sizes))
		total = add(total, times(fields, c.size(list, sizes)))
		lo = end
	}
	return total
}

func (c *Cost) size(list *costList, sizes []int64) uint64 {
	size := list.least
	for _, s := range c.sizes[list.lo:list.hi] {
		n := uint64(s.assumed)
		if int(s.variable) < len(sizes) && sizes[s.variable] > 0 {
			n = uint64(sizes[s.variable])
		}
		size = max(size, n)
	}
	return size
}

// add and times end at the largest number.
func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func times(a, b uint64) uint64 {
	if a != 0 && b > math.MaxUint64/a {
		return math.MaxUint64
	}
	return a * b
}
