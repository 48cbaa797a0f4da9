package control

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicegate/sluice/internal/disk"
)

// newFileMode is the mode of new files: definitions may hold credentials of upstreams.
const newFileMode = 0o640

// replaceFile makes data the content of a file. After a crash or a power failure the
// file has its old or its new content; once replaceFile has returned nil, its new
// content.
func replaceFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return disk.WriteFile(name, data, modeOf(name))
}

// modeOf returns the mode of the file that is replaced.
func modeOf(name string) fs.FileMode {
	if info, err := os.Stat(name); err == nil {
		return info.Mode().Perm()
	}
	return newFileMode
}

// removeFile removes a file durably.
func removeFile(name string) error {
	if err := os.Remove(name); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(name))
}

// abandonedAfter is the age from which on a temporary file has no writer any more.
const abandonedAfter = time.Minute

// sweep removes temporary files of writers that were killed.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(literal(dir), disk.TempPattern)) // the pattern is well-formed
	for _, name := range left {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			_ = os.Remove(name) // the next start tries again
		}
	}
}
