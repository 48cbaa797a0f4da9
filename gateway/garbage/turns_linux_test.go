package garbage

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTurnsAreShortUntilTheyAreUsualAgain(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	turn := func() uint64 {
		attr, err := unix.SchedGetAttr(os.Getpid(), 0) // the first thread of the process
		if err != nil {
			t.Skip("this kernel does not tell:", err)
		}
		return attr.Runtime
	}
	usual := turn()
	shortTurns(true)
	short := turn()
	shortTurns(false)
	if usual == 0 || short == usual {
		t.Skip("this kernel has no turns to choose: Linux has them from 6.12 on")
	}
	if short != shortTurn || turn() != usual {
		t.Errorf("turns of %d ns, then %d, then %d", usual, short, turn())
	}
}
