package embedded

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// takeLock keeps a second process off the directory. The kernel lets go of the
// lock when this process ends, however it ends. The file stays: removing it
// would let two processes lock two files of one name.
func takeLock(dir, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &RunningError{Dir: dir, PID: holder(file)}
	} else if err == nil {
		// One write of fixed length over the old one: a reader never sees half a number.
		_, err = file.WriteAt(fmt.Appendf(nil, "%10d\n", os.Getpid()), 0)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// holder reads who has the lock. A process that has just made the file may not
// have written its number yet, so a few tries are given to it.
func holder(file *os.File) int {
	text := make([]byte, 11)
	for range 20 {
		n, _ := file.ReadAt(text, 0) // an empty file is what the loop is for
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n]))); err == nil {
			return pid
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0
}
