// Package rings holds what rates remember: groups of calls, of very many rates.
package rings

// A Group is calls that are forgotten together.
type Group struct {
	Last  int64 // unix microseconds of its last call
	Calls int64
}

// A Ring holds groups, oldest first. Nothing moves when one leaves. The zero
// value is empty.
type Ring struct {
	groups   []Group // as many as a power of two
	first, n int
}

// Len returns the number of groups; a nil Ring has none.
func (r *Ring) Len() int {
	if r == nil {
		return 0
	}
	return r.n
}

// At returns the i-th oldest group.
func (r *Ring) At(i int) *Group { return &r.groups[(r.first+i)&(len(r.groups)-1)] }

// Push adds the newest group.
func (r *Ring) Push(g Group) {
	if r.n == len(r.groups) {
		larger := make([]Group, max(2*r.n, 4))
		for i := range r.n {
			larger[i] = *r.At(i)
		}
		r.groups, r.first = larger, 0
	}
	r.n++
	*r.At(r.n - 1) = g
}

// Pop takes the oldest group off. There must be one.
func (r *Ring) Pop() Group {
	g := *r.At(0)
	r.first = (r.first + 1) & (len(r.groups) - 1)
	r.n--
	return g
}

// Clear forgets all groups; a nil Ring has none.
func (r *Ring) Clear() {
	if r != nil {
		r.n = 0
	}
}

// Shift dates all groups earlier, by microseconds; a nil Ring has none.
func (r *Ring) Shift(by int64) {
	for i := range r.Len() {
		r.At(i).Last -= by
	}
}

// Rings are rings by number, so that who has one needs no pointer to it, which a
// collection of garbage would have to follow. The zero value holds none.
type Rings struct {
	all   []Ring // number n at n-1
	spare []uint32
}

// Of returns the ring of a number, or nil for 0. It is good until the next Take.
func (r *Rings) Of(number uint32) *Ring {
	if number == 0 {
		return nil
	}
	return &r.all[number-1]
}

// Take returns the number of an empty ring.
func (r *Rings) Take() uint32 {
	if last := len(r.spare) - 1; last >= 0 {
		number := r.spare[last]
		r.spare = r.spare[:last]
		return number
	}
	r.all = append(r.all, Ring{})
	return uint32(len(r.all))
}

// Release takes a ring back, and its memory; 0 is none.
func (r *Rings) Release(number uint32) {
	if number == 0 {
		return
	}
	r.all[number-1] = Ring{}
	r.spare = append(r.spare, number)
	if len(r.spare) == len(r.all) {
		*r = Rings{}
	}
}

// InUse returns how many rings have been taken and not released.
func (r *Rings) InUse() int { return len(r.all) - len(r.spare) }
