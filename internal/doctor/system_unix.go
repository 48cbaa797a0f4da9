//go:build linux || darwin || freebsd

package doctor

import "syscall"

// openFiles is how many files a process started here may have open.
func openFiles() (uint64, error) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Max), err // the runtime raises itself to it
}

// space is how many bytes a folder's disk has free and in all.
func space(dir string) (free, total uint64, err error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, 0, err
	}
	block := uint64(fs.Bsize)
	return uint64(fs.Bavail) * block, uint64(fs.Blocks) * block, nil
}
