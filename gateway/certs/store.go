// Package certs holds the certificates that a gateway serves, and those that definitions
// refer to: in files, which are reloaded when they change, and in a store, which the
// admin or the gateway API fills.
package certs

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/internal/certs"
)

// Store holds certificates by id. Its zero value is empty; it is safe for concurrent
// use.
type Store struct {
	current atomic.Pointer[contents]

	mu      sync.Mutex // held while it is changed
	changed []func()
}

// contents is an immutable state of a store.
type contents struct {
	byID       map[string]*certs.Certificate
	generation uint64
}

// Find returns the certificate with an id, or nil.
func (s *Store) Find(id string) *certs.Certificate {
	if c := s.current.Load(); c != nil {
		return c.byID[id]
	}
	return nil
}

// Generation returns a number that changes with every change.
func (s *Store) Generation() uint64 {
	if c := s.current.Load(); c != nil {
		return c.generation
	}
	return 0
}

// All returns all certificates by id. The caller must not change the map.
func (s *Store) All() map[string]*certs.Certificate {
	if c := s.current.Load(); c != nil {
		return c.byID
	}
	return nil
}

// Replace replaces all certificates. The store owns byID afterwards.
func (s *Store) Replace(byID map[string]*certs.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(byID)
}

// Take replaces all certificates by those of a certs.Delivery in JSON. Certificates that
// cannot be parsed are logged and left out.
func (s *Store) Take(delivery []byte, log *slog.Logger) error {
	var all certs.Delivery
	if err := json.Unmarshal(delivery, &all); err != nil {
		return fmt.Errorf("reading certificates: %w", err)
	}
	byID := make(map[string]*certs.Certificate, len(all.Certificates))
	for i := range all.Certificates {
		one := &all.Certificates[i]
		if old := s.Find(one.ID); old != nil && (old.Key != nil) == (one.Key != "") {
			byID[one.ID] = old // an id always identifies the same certificate
			continue
		}
		c, err := one.Parse()
		if err != nil {
			log.Error("a certificate is left out", "err", err)
			continue
		}
		byID[one.ID] = c
	}
	if all.KeysHeld > 0 {
		log.Warn("private keys of certificates are not sent over plain HTTP: use https in gateway.admin_url", "keys", all.KeysHeld)
	}
	s.Replace(byID)
	return nil
}

// Put adds a certificate, or replaces the one with the same id.
func (s *Store) Put(id string, c *certs.Certificate) {
	s.edit(func(byID map[string]*certs.Certificate) { byID[id] = c })
}

// Delete removes a certificate.
func (s *Store) Delete(id string) {
	s.edit(func(byID map[string]*certs.Certificate) { delete(byID, id) })
}

func (s *Store) edit(change func(map[string]*certs.Certificate)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	byID := maps.Clone(s.All())
	if byID == nil {
		byID = make(map[string]*certs.Certificate)
	}
	change(byID)
	s.set(byID)
}

// set needs mu.
func (s *Store) set(byID map[string]*certs.Certificate) {
	s.current.Store(&contents{byID: byID, generation: s.Generation() + 1})
	for _, told := range s.changed {
		told()
	}
}

// OnChange registers f, which is called after each change. f must not change the store.
func (s *Store) OnChange(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = append(s.changed, f)
}
