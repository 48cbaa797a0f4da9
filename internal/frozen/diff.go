package frozen

// Diff compares two lists and returns what stands in one of them only, as indexes
// in their order. Lists that agree but for a short part in the middle cost one
// comparison per element.
func Diff[T comparable](before, after []T) (gone, come []int) {
	first := 0
	for first < min(len(before), len(after)) && before[first] == after[first] {
		first++
	}
	last := 0
	for last < min(len(before), len(after))-first && before[len(before)-1-last] == after[len(after)-1-last] {
		last++
	}
	was, is := before[first:len(before)-last], after[first:len(after)-last]
	return missing(was, is, first), missing(is, was, first)
}

// missing returns where the elements of from stand that others lacks, counted
// from offset.
func missing[T comparable](from, others []T, offset int) []int {
	if len(from) == 0 {
		return nil
	}
	known := make(map[T]bool, len(others))
	for _, one := range others {
		known[one] = true
	}
	var at []int
	for i, one := range from {
		if !known[one] {
			at = append(at, offset+i)
		}
	}
	return at
}
