package amqp

// A fifo is a queue. Its zero value is empty.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(v T) { f.items = append(f.items, v) }

// at returns the item at a position, 0 for the first.
func (f *fifo[T]) at(i int) T { return f.items[f.head+i] }

// pop removes the first item and returns it. There must be one.
func (f *fifo[T]) pop() T {
	var none T
	v := f.items[f.head]
	f.items[f.head] = none
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	} else if f.head > 64 && f.head > len(f.items)/2 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	return v
}

// take removes the first n items, or fewer, and returns them.
func (f *fifo[T]) take(n int) []T {
	all := make([]T, 0, min(n, f.len()))
	for range cap(all) {
		all = append(all, f.pop())
	}
	return all
}

// unshift puts items before the first.
func (f *fifo[T]) unshift(all []T) {
	f.items, f.head = append(all, f.items[f.head:]...), 0
}
