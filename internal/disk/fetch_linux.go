package disk

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fetch looks whether the first byte can be read at once (RWF_NOWAIT of preadv2(2)),
// and if not has the system begin to read, until it can or time is up.
func fetch(f *os.File, within time.Duration) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	advised := false
	for pause := 50 * time.Microsecond; within > 0; pause *= 2 {
		absent := false
		err := raw.Control(func(fd uintptr) {
			absent = isAbsent(int(fd))
			if absent && !advised {
				advised = unix.Fadvise(int(fd), 0, 0, unix.FADV_WILLNEED) == nil
			}
		})
		if err != nil || !absent || !advised {
			return
		}
		time.Sleep(pause)
		within -= pause
	}
}

// isAbsent tells whether a file's first byte has to come from the disk. Where the
// system cannot tell it is not.
func isAbsent(fd int) bool {
	var first [1]byte
	_, err := unix.Preadv2(fd, [][]byte{first[:]}, 0, unix.RWF_NOWAIT)
	return err == unix.EAGAIN
}
