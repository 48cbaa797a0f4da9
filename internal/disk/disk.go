// Package disk makes changes to files and directories durable.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// SyncDir makes changes to the names in a directory durable, as fsync(2) does for
// the content of a file.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Replace gives the file at temporary, which was synced, the name path in the
// same directory. After a crash path is the old file or the new one.
func Replace(temporary, path string) error {
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// TempPattern matches the temporary files of WriteFile, which a killed process may
// leave behind. They are hidden.
const TempPattern = ".new-*"

// WriteFile makes data the content of the file at path, with a mode. After a crash
// the file has its old content or the new one.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), TempPattern)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails if the file has its new name, as it should
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return Replace(f.Name(), path)
}
