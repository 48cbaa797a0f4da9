package garbage

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// setTurns says how long each thread of this process works when it is its turn; 0 is
// what the system has for all. Threads that they start inherit it. Before Linux 6.12
// the system does not listen, and a thread that it does not let be changed stays as
// it is: it is for requests to be faster, and nothing depends on it.
func setTurns(length time.Duration) {
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
		if err != nil || attr.Policy != unix.SCHED_NORMAL {
			continue // it has ended, or somebody wants it scheduled otherwise
		}
		attr.Runtime = uint64(length)
		_ = unix.SchedSetAttr(id, attr, 0) // it may have ended, or not be ours to change
	}
}
