package acme

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluicegate/sluice/internal/disk"
	"github.com/sluicegate/sluice/internal/secret"
)

// Folder is a vault in encrypted files. A gateway with an admin keeps a copy of its
// certificates in one, for a start without the admin; a gateway without an admin has its
// entries there. Its leases are those of one process.
type Folder struct {
	dir string
	key secret.Key

	mu     sync.Mutex
	leases map[string]lease
}

type lease struct {
	holder   string
	until    time.Time
	failures int
}

// NewFolder returns the vault in a directory, which is created with the first entry.
func NewFolder(dir string, key secret.Key) *Folder {
	return &Folder{dir: dir, key: key, leases: make(map[string]lease)}
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name+".sealed") }

// Get implements Vault.
func (f *Folder) Get(_ context.Context, name string) ([]byte, error) {
	sealed, err := os.ReadFile(f.path(name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, ErrNotFound
	case err != nil:
		return nil, err
	}
	value, err := f.key.Open(sealed, []byte("acme "+name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path(name), err)
	}
	return value, nil
}

// Put implements Vault. Files do not expire: challenges are deleted after use.
func (f *Folder) Put(_ context.Context, name string, value []byte, _ time.Duration) error {
	sealed, err := f.key.Seal(value, []byte("acme "+name))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	return disk.WriteFile(f.path(name), sealed, 0o600)
}

// Delete implements Vault.
func (f *Folder) Delete(_ context.Context, name string) error {
	if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Take implements Vault.
func (f *Folder) Take(_ context.Context, name, holder string, lasts time.Duration) (failures int, granted bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, l := time.Now(), f.leases[name]
	if now.Before(l.until) {
		return 0, false, nil
	}
	l.holder, l.until = holder, now.Add(lasts)
	f.leases[name] = l
	return l.failures, true, nil
}

// Settle implements Vault.
func (f *Folder) Settle(_ context.Context, name, holder string, end Outcome) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leases[name].holder == holder {
		f.leases[name] = lease{holder: holder, until: time.Now().Add(end.Pause), failures: end.Failures}
	}
	return nil
}
