package keystore

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicegate/sluice/internal/definition"
)

// shards is how many locks the sessions are spread over, and how finely List
// pages.
const shards = 256

// Memory holds sessions in this process, for as long as it runs.
type Memory struct {
	seed     maphash.Seed
	shard    [shards]shard
	watchers watchers
}

type shard struct {
	mu       sync.RWMutex
	sessions map[string]*definition.Session
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	m := &Memory{seed: maphash.MakeSeed()}
	for i := range m.shard {
		m.shard[i].sessions = make(map[string]*definition.Session)
	}
	return m
}

func (m *Memory) of(hash string) *shard {
	return &m.shard[maphash.String(m.seed, hash)%shards]
}

// Get implements Store. It neither waits nor allocates.
func (m *Memory) Get(_ context.Context, keyHash string) (*definition.Session, error) {
	s := m.of(keyHash)
	s.mu.RLock()
	found := s.sessions[keyHash]
	s.mu.RUnlock()
	if found == nil {
		return nil, ErrNotFound
	}
	return found, nil
}

// Put implements Store.
func (m *Memory) Put(_ context.Context, keyHash string, session *definition.Session) error {
	m.put(keyHash, session)
	m.watchers.tell(keyHash)
	return nil
}

func (m *Memory) put(keyHash string, session *definition.Session) {
	s := m.of(keyHash)
	s.mu.Lock()
	s.sessions[keyHash] = session
	s.mu.Unlock()
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, keyHash string) error {
	if !m.remove(keyHash) {
		return ErrNotFound
	}
	m.watchers.tell(keyHash)
	return nil
}

func (m *Memory) remove(keyHash string) bool {
	s := m.of(keyHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.sessions[keyHash]
	delete(s.sessions, keyHash)
	return there
}

// List implements Store. A cursor is the number of a shard, and the last hash
// returned of it.
func (m *Memory) List(_ context.Context, cursor string, count int) ([]string, string, error) {
	number, last, _ := strings.Cut(cursor, ":")
	at, err := strconv.Atoi(number)
	if cursor == "" {
		at, err = 0, nil
	}
	if err != nil || at < 0 || at >= shards {
		return nil, "", fmt.Errorf("cursor %q: use one that List returned", cursor)
	}
	var found []string
	for ; at < shards; at, last = at+1, "" {
		hashes := m.shard[at].after(last)
		if room := count - len(found); len(hashes) > room {
			found = append(found, hashes[:max(room, 1)]...)
			return found, strconv.Itoa(at) + ":" + found[len(found)-1], nil
		}
		found = append(found, hashes...)
	}
	return found, "", nil
}

// after returns the hashes of a shard that are greater than last, in order.
func (s *shard) after(last string) []string {
	s.mu.RLock()
	hashes := make([]string, 0, len(s.sessions))
	for hash := range maps.Keys(s.sessions) {
		if hash > last {
			hashes = append(hashes, hash)
		}
	}
	s.mu.RUnlock()
	slices.Sort(hashes)
	return hashes
}

// all calls each with every session; it must not use the store.
func (m *Memory) all(each func(hash string, session *definition.Session) error) error {
	for i := range m.shard {
		s := &m.shard[i]
		s.mu.RLock()
		sessions := maps.Clone(s.sessions)
		s.mu.RUnlock()
		for hash, session := range sessions {
			if err := each(hash, session); err != nil {
				return err
			}
		}
	}
	return nil
}

// Len returns the number of sessions.
func (m *Memory) Len() int {
	n := 0
	for i := range m.shard {
		s := &m.shard[i]
		s.mu.RLock()
		n += len(s.sessions)
		s.mu.RUnlock()
	}
	return n
}

// Watch implements Store.
func (m *Memory) Watch(ctx context.Context, changed func(keyHash string)) error {
	return m.watchers.watch(ctx, changed)
}
