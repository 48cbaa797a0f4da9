package garbage

import (
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lengths returns how long the turns of each thread are, by thread.
func lengths(t *testing.T) map[int]time.Duration {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[int]time.Duration)
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		if attr, err := unix.SchedGetAttr(id, 0); err == nil {
			all[id] = time.Duration(attr.Runtime)
		}
	}
	return all
}

func TestTurnsAreShortAndThenAsBefore(t *testing.T) {
	before := lengths(t)
	setTurns(short)
	during := lengths(t)
	setTurns(0)
	after := lengths(t)
	for id, was := range before {
		if was == 0 {
			t.Skip("this system has no turns of threads")
		}
		if got, there := during[id]; there && got != short {
			t.Errorf("thread %d works for %v at a time, want %v", id, got, short)
		}
		if got, there := after[id]; there && got != was {
			t.Errorf("afterwards thread %d works for %v at a time, before for %v", id, got, was)
		}
	}
}
