package wire

import "runtime"

// turnBytes is how much of a body is transferred before other goroutines that are
// ready run, in bytes. It takes about a tenth of a millisecond.
const turnBytes = 128 << 10

// turn counts the bytes of one body that were transferred since others could run.
//
// A transfer that waits neither for its sender nor for its receiver occupies a
// processor until the runtime interrupts it, which it does after 10 ms. With fifty
// of them on one processor, a request waits for half a second each time that it
// waits for anything.
type turn int

// add counts n bytes, and lets others run after turnBytes.
func (t *turn) add(n int) {
	if *t += turn(n); *t >= turnBytes {
		*t = 0
		runtime.Gosched()
	}
}
