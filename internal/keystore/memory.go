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

// Memory holds sessions in this process, packed: about 280 bytes for a typical one.
type Memory struct {
	seed     maphash.Seed
	shard    [shards]shard
	watchers watchers
}

// shard holds a part of the sessions.
type shard struct {
	mu     sync.RWMutex
	packed map[string]string // by the hash of the key; both are parts of one string
	most   int               // keys that the map had since it was made
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	m := &Memory{seed: maphash.MakeSeed()}
	for i := range m.shard {
		m.shard[i].packed = make(map[string]string)
	}
	return m
}

func (m *Memory) shardOf(keyHash string) *shard {
	return &m.shard[maphash.String(m.seed, keyHash)%shards]
}

func (s *shard) get(keyHash string) (packed string, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	packed, ok = s.packed[keyHash]
	return packed, ok
}

// Get implements Store. It does not wait. The session is the caller's; its strings
// share memory with the store.
func (m *Memory) Get(_ context.Context, keyHash string) (*definition.Session, error) {
	packed, ok := m.shardOf(keyHash).get(keyHash)
	if !ok {
		return nil, ErrNotFound
	}
	return unpack(keyHash, packed)
}

func unpack(keyHash, packed string) (*definition.Session, error) {
	session, err := definition.UnpackSession(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: key %.12s: %w", ErrUnreadable, keyHash, err)
	}
	return session, nil
}

// has reports whether there is a key.
func (m *Memory) has(keyHash string) bool {
	_, ok := m.shardOf(keyHash).get(keyHash)
	return ok
}

// Put implements Store.
func (m *Memory) Put(_ context.Context, keyHash string, session *definition.Session) error {
	m.put(keyHash, session)
	m.watchers.notify(keyHash)
	return nil
}

func (m *Memory) put(keyHash string, session *definition.Session) {
	var buffer [512]byte // most sessions fit
	both := string(session.Pack(append(buffer[:0], keyHash...)))
	s := m.shardOf(keyHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packed[both[:len(keyHash)]] = both[len(keyHash):]
	s.most = max(s.most, len(s.packed))
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, keyHash string) error {
	if !m.remove(keyHash) {
		return ErrNotFound
	}
	m.watchers.notify(keyHash)
	return nil
}

func (m *Memory) remove(keyHash string) bool {
	s := m.shardOf(keyHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.packed[keyHash]; !ok {
		return false
	}
	delete(s.packed, keyHash)
	if n := len(s.packed); n < s.most/4 { // a map does not shrink
		smaller := make(map[string]string, n)
		maps.Copy(smaller, s.packed)
		s.packed, s.most = smaller, n
	}
	return true
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
		if left := count - len(found); len(hashes) > left {
			found = append(found, hashes[:max(left, 1)]...)
			return found, strconv.Itoa(at) + ":" + found[len(found)-1], nil
		}
		found = append(found, hashes...)
	}
	return found, "", nil
}

// after returns the hashes of a shard that are greater than last, in order.
func (s *shard) after(last string) []string {
	s.mu.RLock()
	hashes := make([]string, 0, len(s.packed))
	for keyHash := range s.packed {
		if keyHash > last {
			hashes = append(hashes, keyHash)
		}
	}
	s.mu.RUnlock()
	slices.Sort(hashes)
	return hashes
}

// all calls each with every session, until it returns an error.
func (m *Memory) all(each func(keyHash string, session *definition.Session) error) error {
	for i := range m.shard {
		s := &m.shard[i]
		s.mu.RLock()
		packed := maps.Clone(s.packed)
		s.mu.RUnlock()
		for keyHash, one := range packed {
			session, err := unpack(keyHash, one)
			if err == nil {
				err = each(keyHash, session)
			}
			if err != nil {
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
		n += len(s.packed)
		s.mu.RUnlock()
	}
	return n
}

// Watch implements Store.
func (m *Memory) Watch(ctx context.Context, changed func(keyHash string)) error {
	return m.watchers.watch(ctx, changed)
}
