package testenv

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// makeDir makes a directory for the files of a server whose data may be lost, and removes
// those with the same prefix that test processes have left behind. Its path is short, as a
// socket's must be, and the server's user reaches it.
func makeDir(prefix string) (string, error) {
	root := "/tmp"
	if inMemory() {
		root = memory
	}
	for _, at := range []string{"/tmp", memory} {
		sweep(filepath.Join(at, prefix+"*"))
	}
	return os.MkdirTemp(root, prefix)
}

// A database for a test has hundreds of files. Copying one takes 70 ms in memory and
// 300 to 700 ms on a disk.
const (
	memory     = "/dev/shm"
	leastInRAM = 4 << 30 // bytes that are free there, else it is not used
)

func inMemory() bool {
	var of syscall.Statfs_t
	return syscall.Statfs(memory, &of) == nil && of.Bavail*uint64(of.Bsize) >= leastInRAM
}

// sweep removes directories of test processes that died together with their remover:
// their locks are free. A directory younger than a minute may not be locked yet.
func sweep(pattern string) {
	dirs, _ := filepath.Glob(pattern) // fails on a malformed pattern only
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil && time.Since(info.ModTime()) > time.Minute && !locked(filepath.Join(dir, "sluice.lock")) {
			_ = os.RemoveAll(dir) // fails on another user's
		}
	}
}
