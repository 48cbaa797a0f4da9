package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// tempPattern names files that are being written; they are hidden, so that
// nobody takes one for a definition.
const tempPattern = ".sluice-*.tmp"

// newFileMode is for files that were not there before: definitions may hold
// credentials of upstreams.
const newFileMode = 0o640

// replaceFile makes data the content of a file. After a crash, or a power cut,
// the file has its old content or the new one; once replaceFile has returned
// nil, the new one.
func replaceFile(name string, data []byte) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, tempPattern)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	if err := fill(tmp, data, modeOf(name)); err != nil {
		return fmt.Errorf("writing %s: %w", tmp.Name(), err)
	}
	if err := os.Rename(tmp.Name(), name); err != nil {
		return err
	}
	return syncDir(dir)
}

// fill writes, syncs and closes f.
func fill(f *os.File, data []byte, mode fs.FileMode) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// modeOf is the mode that a file keeps when it is replaced.
func modeOf(name string) fs.FileMode {
	if info, err := os.Stat(name); err == nil {
		return info.Mode().Perm()
	}
	return newFileMode
}

// removeFile removes a file for good.
func removeFile(name string) error {
	if err := os.Remove(name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// abandonedAfter is when a file that is being written has no writer any more.
const abandonedAfter = time.Minute

// sweep removes what writers left behind that were killed.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(literal(dir), tempPattern)) // the pattern is well-formed
	for _, name := range left {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			_ = os.Remove(name) // the next start tries again
		}
	}
}
