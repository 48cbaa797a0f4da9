package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/secret"
)

// lastGood is the bundle that a gateway last had in force, on disk, sealed:
// definitions may hold upstream credentials.
type lastGood struct {
	path string
	key  secret.Key
}

// lastGoodPurpose separates the sealing key from other uses of the token.
const lastGoodPurpose = "last good configuration"

func newLastGood(dir string, token secret.Value) (*lastGood, error) {
	key, err := secret.DeriveKey(token, lastGoodPurpose)
	if err != nil {
		return nil, fmt.Errorf("last good configuration: %w", err)
	}
	return &lastGood{path: filepath.Join(dir, "last-good.sealed"), key: key}, nil
}

// save replaces the copy: a crash leaves the old one or the new one.
func (l *lastGood) save(b *definition.Bundle) error {
	plain, err := json.Marshal(b)
	if err != nil {
		return err
	}
	sealed, err := l.key.Seal(plain, []byte(lastGoodPurpose))
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(l.path), ".last-good-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	_, err = tmp.Write(sealed)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), l.path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(l.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// load returns the copy, or nil when there is none.
func (l *lastGood) load() (*definition.Bundle, error) {
	sealed, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plain, err := l.key.Open(sealed, []byte(lastGoodPurpose))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	b, err := definition.ParseBundle(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.path, err)
	}
	return b, nil
}
