package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluicegate/sluice/internal/disk"
)

// KeepFile returns the secret in the file at path, which only its owner may access. If
// there is no such file, KeepFile creates it with mode 0600 and the secret that fresh
// returns, and created is true. If several processes start at once, one creates the
// file and all return its content. After a crash the file is either absent or
// complete. The directory must exist.
func KeepFile(path string, fresh func() string) (v Value, created bool, err error) {
	v, err = readPrivate(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return v, false, err
	}
	v = New(fresh())
	if v.Empty() {
		return Value{}, false, fmt.Errorf("making secret file %s: the new secret is empty", path)
	}
	err = createPrivate(path, v.Reveal()+"\n")
	if errors.Is(err, fs.ErrExist) {
		v, err = readPrivate(path) // another process was first
		return v, false, err
	}
	if err != nil {
		return Value{}, false, fmt.Errorf("making secret file: %w", err)
	}
	return v, true, nil
}

// readPrivate reads a secret file, and refuses one that others may read, as they may
// have read it already, and one whose secret cannot be sent in a header.
func readPrivate(path string) (v Value, err error) {
	info, err := os.Stat(path) // before opening: opening a named pipe would wait for its writer
	if err != nil {
		return Value{}, fmt.Errorf("reading a secret: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Value{}, fmt.Errorf("secret file %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return Value{}, fmt.Errorf("reading a secret: %w", err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return Value{}, fmt.Errorf("reading a secret: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return Value{}, fmt.Errorf("secret file %s has mode %04o, so others may read it: run chmod 600 %s, and replace the secret if that was not intended", path, mode, path)
	}
	if v, err = readSecret(f, path); err != nil {
		return Value{}, err
	}
	if err := CheckHeader(v.Reveal()); err != nil {
		return Value{}, fmt.Errorf("secret file %s %w", path, err)
	}
	return v, nil
}

// createPrivate creates path with content, complete or not at all. It fails with
// fs.ErrExist if path exists: a hard link, unlike a rename, never replaces.
func createPrivate(path, content string) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := writeSynced(tmp, content); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil {
		return err
	}
	return disk.SyncDir(dir)
}

func writeSynced(f *os.File, content string) error {
	_, err := f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
