package keystore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/disk"
)

// File holds sessions in memory and in a journal on disk: a write that was acknowledged
// survives a crash of the process and of the machine. Concurrent writes share an
// fsync.
type File struct {
	*Memory
	path   string
	log    *slog.Logger
	lock   *os.File
	commit chan *change

	closing sync.RWMutex // read-locked while a write is sent to commit
	closed  bool
	done    chan struct{} // closed when the committer has ended

	// The committer's.
	file    *os.File
	end     int64
	number  uint64
	records int
	enough  int   // records that start the next compaction
	broken  error // why no further write is accepted
}

// A change is a write that waits for the committer.
type change struct {
	record
	line []byte     // the encoded record
	done chan error // receives the outcome; buffered
}

const (
	maxBatch    = 1 << 20 // bytes of records in a frame
	waiting     = 1024    // changes that may wait for the committer
	wasteful    = 10_000  // records beyond twice the sessions at which the journal is compacted
	journalMode = 0o600   // sessions are confidential
)

// OpenFile opens the journal at path, or creates it, and reads it. Only one process can
// open it at a time. What a crash left of changes that were not acknowledged is cut off
// and logged. The caller must Close.
func OpenFile(path string, log *slog.Logger) (*File, error) {
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("key journal: %w", err)
	}
	s := &File{
		Memory: NewMemory(), path: path, log: log, lock: lock,
		commit: make(chan *change, waiting), done: make(chan struct{}),
	}
	if err := s.load(); err != nil {
		if s.file != nil {
			_ = s.file.Close() // nothing was written
		}
		_ = lock.Close()
		return nil, fmt.Errorf("key journal: %w", err)
	}
	s.enough = 2*s.Len() + wasteful
	go s.run()
	return s, nil
}

// load reads the journal and cuts off an incomplete frame at its end.
func (s *File) load() error {
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, journalMode)
	if err != nil {
		return err
	}
	s.file = f
	found, err := readJournal(f, func(r record) {
		if r.Session == nil {
			s.remove(r.Hash)
			return
		}
		s.put(r.Hash, r.Session)
	})
	if err != nil {
		return err
	}
	s.end, s.number, s.records = found.end, found.number, found.records
	if found.torn > 0 {
		s.log.Warn("end of key journal cut off: a crash left changes that were not acknowledged", "path", s.path, "bytes", found.torn)
		if err := f.Truncate(s.end); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(s.path))
}

// Put implements Store. It returns once the change is on disk; after an ErrUnavailable
// the change may or may not be made.
func (s *File) Put(ctx context.Context, keyHash string, session *definition.Session) error {
	return s.write(ctx, record{Hash: keyHash, Session: session})
}

// Delete implements Store, as durable as Put.
func (s *File) Delete(ctx context.Context, keyHash string) error {
	return s.write(ctx, record{Hash: keyHash})
}

var errClosed = fmt.Errorf("%w: it is closed", ErrUnavailable)

func (s *File) write(ctx context.Context, r record) error {
	line, err := r.line()
	if err != nil {
		return err
	}
	c := &change{record: r, line: line, done: make(chan error, 1)}
	if err := s.send(ctx, c); err != nil {
		return err
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for the disk: %w", ErrUnavailable, ctx.Err())
	}
}

func (s *File) send(ctx context.Context, c *change) error {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return errClosed
	}
	select {
	case s.commit <- c:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for the disk: %w", ErrUnavailable, ctx.Err())
	}
}

// Close closes the store once all pending writes are on disk.
func (s *File) Close() error {
	s.closing.Lock()
	first := !s.closed
	s.closed = true
	s.closing.Unlock()
	if !first {
		return nil
	}
	close(s.commit)
	<-s.done
	return errors.Join(s.file.Close(), s.lock.Close())
}

// run is the committer, the only goroutine that writes to the journal.
func (s *File) run() {
	defer close(s.done)
	var batch []*change
	for c := range s.commit {
		batch = s.gather(append(batch[:0], c))
		s.commitBatch(batch)
		clear(batch)
		if s.broken == nil && s.records > s.enough {
			s.broken = s.compact()
			s.enough = max(s.records, 2*s.Len()) + wasteful
		}
	}
}

// gather adds the changes that are waiting, up to a full frame.
func (s *File) gather(batch []*change) []*change {
	for size := len(batch[0].line); size < maxBatch; {
		select {
		case c, open := <-s.commit:
			if !open {
				return batch
			}
			size += len(c.line)
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}

// commitBatch writes a batch as one frame and reports the outcome to its writers.
func (s *File) commitBatch(batch []*change) {
	var payload []byte
	there := make(map[string]bool) // which keys of the batch will exist
	absent := make([]bool, len(batch))
	for i, c := range batch {
		if c.Session == nil && !s.exists(there, c.Hash) {
			absent[i] = true
			continue
		}
		payload = append(payload, c.line...)
		there[c.Hash] = c.Session != nil
	}
	failed := s.append(payload)
	for i, c := range batch {
		switch {
		case failed != nil:
			c.done <- failed
		case absent[i]:
			c.done <- ErrNotFound
		default:
			s.records++
			s.apply(c.record)
			c.done <- nil
		}
	}
}

func (s *File) exists(there map[string]bool, hash string) bool {
	if now, known := there[hash]; known {
		return now
	}
	return s.has(hash)
}

func (s *File) apply(r record) {
	if r.Session == nil {
		s.remove(r.Hash)
	} else {
		s.put(r.Hash, r.Session)
	}
	s.watchers.notify(r.Hash)
}

// append writes records to disk. After an error none of them counts: what was written
// of them is cut off. If that fails, or the fsync failed, the store accepts no further
// writes.
func (s *File) append(payload []byte) error {
	if s.broken != nil {
		return s.broken
	}
	if len(payload) == 0 {
		return nil
	}
	frame := appendFrame(nil, s.number+1, payload)
	if _, err := s.file.WriteAt(frame, s.end); err != nil {
		failed := fmt.Errorf("%w: writing %s: %w", ErrUnavailable, s.path, err)
		if cut := s.file.Truncate(s.end); cut != nil {
			s.broken = failed
		}
		return failed
	}
	if err := s.file.Sync(); err != nil {
		s.broken = fmt.Errorf("%w: flushing %s: %w", ErrUnavailable, s.path, err)
		return s.broken
	}
	s.end += int64(len(frame))
	s.number++
	return nil
}
