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
	_ = raw.Control(func(fd uintptr) { leaveTime(int(fd)) }) // a closed file is found out below
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

// leaveTime has reads of a file not note when it was read: the first one behind a
// change would wait for the file system's journal. That takes who owns the file, or
// root; for others it stays as it is.
func leaveTime(fd int) {
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags|unix.O_NOATIME) // a hint, like the rest
	}
}

// isAbsent tells whether a file's first byte has to come from the disk. Where the
// system cannot tell it is not.
func isAbsent(fd int) bool {
	var first [1]byte
	_, err := unix.Preadv2(fd, [][]byte{first[:]}, 0, unix.RWF_NOWAIT)
	return err == unix.EAGAIN
}
