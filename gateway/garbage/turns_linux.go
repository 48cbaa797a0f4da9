package garbage

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// shortTurn is how long a thread that serves may have to wait for one that
// collects, in nanoseconds, where the kernel can be asked for it.
const shortTurn = 300_000

// shortTurns has the threads of the process take turns of a short time on its
// processors, or of the usual one. Linux can from version 6.12 on, and without it
// turns are of 3 or 4 milliseconds; there is nothing to be done about a failure.
func shortTurns(on bool) {
	turn := uint64(0) // the usual one
	if on {
		turn = shortTurn
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		attr, err := unix.SchedGetAttr(id, 0)
		if err == nil && attr.Policy == unix.SCHED_NORMAL { // with any other, somebody chose it
			attr.Runtime = turn
			_ = unix.SchedSetAttr(id, attr, 0)
		}
	}
}
