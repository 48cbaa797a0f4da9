package frozen

import "slices"

// Diff compares two lists and returns what stands in one of them only, as indexes
// in their order. Lists that agree but for a short part in the middle cost one
// comparison per element.
//
// step is called between small pieces of work and may wait; Diff returns its error.
func Diff[T comparable](before, after []T, step func() error) (gone, come []int, err error) {
	first := 0
	for first < min(len(before), len(after)) && before[first] == after[first] {
		first++
	}
	last := 0
	for last < min(len(before), len(after))-first && before[len(before)-1-last] == after[len(after)-1-last] {
		last++
	}
	was, is := before[first:len(before)-last], after[first:len(after)-last]
	if gone, err = missing(was, is, first, step); err != nil {
		return nil, nil, err
	}
	come, err = missing(is, was, first, step)
	return gone, come, err
}

// missing returns where the elements of from stand that others lacks, counted
// from offset.
func missing[T comparable](from, others []T, offset int, step func() error) (at []int, err error) {
	if len(from) == 0 {
		return nil, nil
	}
	known := make(map[T]bool, len(others))
	if err := InSteps(others, step, func(one T) { known[one] = true }); err != nil {
		return nil, err
	}
	err = InSteps(from, step, func(one T) {
		if !known[one] {
			at = append(at, offset)
		}
		offset++
	})
	return at, err
}

// atOnce is how many elements are a small piece of work.
const atOnce = 256

// InSteps calls do for each element, and step between small pieces of that, which
// may wait. It ends with step's error.
func InSteps[T any](list []T, step func() error, do func(one T)) error {
	for part := range slices.Chunk(list, atOnce) {
		for _, one := range part {
			do(one)
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
