package certs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/disk"
	"github.com/sluicegate/sluice/internal/secret"
)

// Folder stores the certificates of a gateway without an admin, each in an encrypted
// file, since it may hold a private key. A change is in force when the call returns. It
// is safe for concurrent use in one process.
type Folder struct {
	dir   string
	key   secret.Key
	store *Store
	mu    sync.Mutex // held while files are changed
}

// ErrNotFound means that there is no certificate with an id.
var ErrNotFound = errors.New("certificate not found")

// ErrOrg means that an organisation's id cannot be part of a certificate's id.
var ErrOrg = errors.New(`the id of an organisation has letters, digits, "-", "_" and "." only`)

const (
	sealedSuffix  = ".sealed"
	sealedPurpose = "certificate "
)

// OpenFolder reads a directory into a store. The key is in a file beside the directory
// and is created if missing. Files that cannot be read are logged and left out.
func OpenFolder(dir string, store *Store, log *slog.Logger) (*Folder, error) {
	key, _, err := secret.KeepKey(dir + ".key")
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	f := &Folder{dir: dir, key: key, store: store}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	byID := make(map[string]*certs.Certificate)
	otherKey := 0
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), sealedSuffix)
		if !ok {
			continue
		}
		c, err := f.read(id)
		switch {
		case err == nil:
			byID[id] = c
		case errors.Is(err, secret.ErrOtherKey):
			otherKey++
		default:
			log.Error("a certificate is left out", "file", f.path(id), "err", err)
		}
	}
	if otherKey > 0 {
		log.Error("certificates are left out that were sealed with another key: restore the file of the key, or add them again", "key", dir+".key", "certificates", otherKey)
	}
	store.Replace(byID)
	return f, nil
}

func (f *Folder) path(id string) string { return filepath.Join(f.dir, id+sealedSuffix) }

func (f *Folder) read(id string) (*certs.Certificate, error) {
	sealed, err := os.ReadFile(f.path(id))
	if err != nil {
		return nil, err
	}
	text, err := f.key.Open(sealed, []byte(sealedPurpose+id))
	if err != nil {
		return nil, err
	}
	return (&certs.Delivered{ID: id, PEM: string(text)}).Parse()
}

// Add stores a certificate and returns its id. A stored certificate may gain a private
// key, but never loses it. The error is *certs.TakenError for a name that another
// organisation uses, and *certs.FullError beyond the limits.
func (f *Folder) Add(_ context.Context, org string, text []byte) (id string, err error) {
	if org != "" && !definition.ValidID(org) { // it becomes part of a path
		return "", ErrOrg
	}
	c, err := certs.Parse(text)
	if err != nil {
		return "", err
	}
	id = c.ID(org)
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.store.Find(id)
	if old != nil && old.Key != nil && c.Key == nil {
		return id, nil
	}
	if err := f.admit(org, c, old == nil); err != nil {
		return "", err
	}
	key, err := c.KeyPEM()
	if err != nil {
		return "", err
	}
	sealed, err := f.key.Seal(append(c.PublicPEM(), key...), []byte(sealedPurpose+id))
	if err != nil {
		return "", err
	}
	if err := disk.WriteFile(f.path(id), sealed, 0o600); err != nil {
		return "", fmt.Errorf("keeping a certificate: %w", err)
	}
	f.store.Put(id, c)
	return id, nil
}

// admit refuses a certificate with a name that another organisation uses, or one beyond
// the limits. It needs mu.
func (f *Folder) admit(org string, c *certs.Certificate, isNew bool) error {
	count, bytes := 0, int64(0)
	for id, one := range f.store.All() {
		of, _, _ := certs.SplitID(id)
		if of != org {
			if err := c.Taken(one.Claims(one.Key != nil)); err != nil {
				return err
			}
			continue
		}
		info, err := os.Stat(f.path(id))
		if err != nil {
			continue // deleted by hand
		}
		count, bytes = count+1, bytes+info.Size()
	}
	if !isNew {
		return nil
	}
	return certs.CheckCapacity(count, bytes, len(c.PublicPEM()))
}

// Get returns a certificate, or ErrNotFound.
func (f *Folder) Get(_ context.Context, id string) (certs.Info, error) {
	c := f.store.Find(id)
	org, _, ok := certs.SplitID(id)
	if c == nil || !ok {
		return certs.Info{}, ErrNotFound
	}
	return c.Info(org, c.Key != nil), nil
}

// List returns all certificates of an organisation, or with "" of all organisations,
// ordered by id.
func (f *Folder) List(_ context.Context, org string) ([]certs.Info, error) {
	all := make([]certs.Info, 0, len(f.store.All()))
	for id, c := range f.store.All() {
		if of, _, ok := certs.SplitID(id); ok && (org == "" || of == org) {
			all = append(all, c.Info(of, c.Key != nil))
		}
	}
	slices.SortFunc(all, func(a, b certs.Info) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// Delete removes a certificate, or returns ErrNotFound.
func (f *Folder) Delete(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store.Find(id) == nil {
		return ErrNotFound
	}
	if err := os.Remove(f.path(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forgetting a certificate: %w", err)
	}
	f.store.Delete(id)
	return disk.SyncDir(f.dir)
}
