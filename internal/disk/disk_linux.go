package disk

import (
	"os"
	"syscall"
)

// writeOnly has SyncFileRange begin to write, and wait for nothing
// (sync_file_range(2), SYNC_FILE_RANGE_WRITE).
const writeOnly = 2

// begin has the system begin to write n bytes of f from offset on to the disk. It is
// a hint.
func begin(f *os.File, offset, n int64) {
	_ = syscall.SyncFileRange(int(f.Fd()), offset, n, writeOnly)
}

// isNameless tells whether no name leads to a file any more.
func isNameless(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
