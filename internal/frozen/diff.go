package frozen

import "slices"

// Diff compares two lists and returns the indexes of the elements that only one of them
// has, in order. Lists that differ in a short part only cost one comparison per element.
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

// missing returns the indexes of the elements of from that others lacks, plus offset.
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

// atOnce is the number of elements in a small piece of work.
const atOnce = 256

// InSteps calls do for each element, and step between small pieces of work. step may
// wait; InSteps returns its error.
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
