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

// takeLock locks the directory against a second process. The kernel releases the lock
// when this process ends. The file is not removed, because two processes could then lock
// two files of one name.
func takeLock(dir, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &RunningError{Dir: dir, PID: holder(file)}
	} else if err == nil {
		// One write of fixed length over the old number: a reader never sees a part of
		// it.
		_, err = file.WriteAt(fmt.Appendf(nil, "%10d\n", os.Getpid()), 0)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// holder returns the process that has the lock, 0 if unknown. A process that has just
// created the file may not have written its number yet, hence the retries.
func holder(file *os.File) int {
	text := make([]byte, 11)
	for range 20 {
		n, _ := file.ReadAt(text, 0) // an empty file is read again
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n]))); err == nil {
			return pid
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0
}
