package keystore

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/slab"
)

// shards is how many locks the sessions are spread over, and how finely List
// pages.
const shards = 256

// Memory holds sessions in this process, for as long as it runs: packed, in
// memory that no collection of garbage has to look through.
type Memory struct {
	seed     maphash.Seed
	shard    [shards]shard
	watchers watchers
}

// shard holds a part of the sessions. Each of its records is the length of a
// key's hash, that hash, and the packed session.
type shard struct {
	mu       sync.RWMutex
	sessions slab.Table
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{seed: maphash.MakeSeed()} }

// of returns the shard of a key, and the hash by which its record is found there.
func (m *Memory) of(keyHash string) (*shard, uint64) {
	sum := maphash.String(m.seed, keyHash)
	return &m.shard[sum>>56], sum
}

// appendHead begins a record.
func appendHead(b []byte, keyHash string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(keyHash))), keyHash...)
}

// divide returns the parts of a record.
func divide(record []byte) (keyHash, packed []byte) {
	length, n := binary.Uvarint(record)
	end := n + int(length)
	return record[n:end], record[end:]
}

// find returns the place of a key's record, or -1. The caller holds the lock.
func (s *shard) find(sum uint64, keyHash string) int {
	for at := s.sessions.Find(sum); at >= 0; at = s.sessions.Another(at) {
		if found, _ := divide(s.sessions.Record(at)); string(found) == keyHash {
			return at
		}
	}
	return -1
}

// Get implements Store. It does not wait, and returns a copy of its own.
func (m *Memory) Get(_ context.Context, keyHash string) (*definition.Session, error) {
	s, sum := m.of(keyHash)
	var packed []byte
	s.mu.RLock()
	at := s.find(sum, keyHash)
	if at >= 0 {
		_, packed = divide(s.sessions.Record(at))
	}
	s.mu.RUnlock()
	if at < 0 {
		return nil, ErrNotFound
	}
	return unpack(keyHash, packed)
}

func unpack(keyHash string, packed []byte) (*definition.Session, error) {
	session, err := definition.UnpackSession(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: key %.12s: %w", ErrUnreadable, keyHash, err)
	}
	return session, nil
}

// has tells whether there is a key.
func (m *Memory) has(keyHash string) bool {
	s, sum := m.of(keyHash)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.find(sum, keyHash) >= 0
}

// Put implements Store.
func (m *Memory) Put(_ context.Context, keyHash string, session *definition.Session) error {
	m.put(keyHash, session)
	m.watchers.tell(keyHash)
	return nil
}

func (m *Memory) put(keyHash string, session *definition.Session) {
	var room [512]byte // most records fit
	record := session.Pack(appendHead(room[:0], keyHash))
	s, sum := m.of(keyHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.find(sum, keyHash); at >= 0 {
		s.sessions.Replace(at, record)
	} else {
		s.sessions.Add(sum, record)
	}
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
	s, sum := m.of(keyHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.find(sum, keyHash)
	if at >= 0 {
		s.sessions.Remove(at)
	}
	return at >= 0
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
	hashes := make([]string, 0, s.sessions.Len())
	for _, record := range s.sessions.All() {
		if keyHash, _ := divide(record); string(keyHash) > last {
			hashes = append(hashes, string(keyHash))
		}
	}
	s.mu.RUnlock()
	slices.Sort(hashes)
	return hashes
}

// all calls each with every session, until it returns an error.
func (m *Memory) all(each func(keyHash string, session *definition.Session) error) error {
	for i := range m.shard {
		for _, record := range m.shard[i].records() {
			hash, packed := divide(record)
			keyHash := string(hash)
			session, err := unpack(keyHash, packed)
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

// records returns the records that a shard has now.
func (s *shard) records() [][]byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([][]byte, 0, s.sessions.Len())
	for _, record := range s.sessions.All() {
		all = append(all, record)
	}
	return all
}

// Len returns the number of sessions.
func (m *Memory) Len() int {
	n := 0
	for i := range m.shard {
		s := &m.shard[i]
		s.mu.RLock()
		n += s.sessions.Len()
		s.mu.RUnlock()
	}
	return n
}

// Watch implements Store.
func (m *Memory) Watch(ctx context.Context, changed func(keyHash string)) error {
	return m.watchers.watch(ctx, changed)
}
