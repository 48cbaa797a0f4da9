// Package disk reads, writes, flushes and gives back files so that no single call of the
// system takes long: Go's scheduler notices late that one waits, and with one
// processor everything waits with it.
package disk

import (
	"errors"
	"os"
	"sync"
	"time"
)

// part is how much of a file is given back at once, in bytes: less than a
// millisecond's work.
const part = 4 << 20

// A Leaving is a file that is going to be replaced or removed, and takes its room on
// the disk until Release. The zero value is of no file.
type Leaving struct{ file *os.File }

// Leave opens a file that somebody is about to replace or remove. One that does not
// exist, or cannot be opened, needs no Release.
func Leave(path string) Leaving {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return Leaving{}
	}
	return Leaving{f}
}

// Release gives the file's room back, a part at a time, and calls rest in between.
// The file must have lost its name for good: in a directory that was synced. What
// goes wrong costs nothing but time, since the system gives back the rest.
func (l Leaving) Release(rest func()) {
	if l.file == nil {
		return
	}
	defer func() { _ = l.file.Close() }()
	info, err := l.file.Stat()
	if err != nil || !isNameless(info) { // somebody keeps a copy under another name
		return
	}
	for size := info.Size() - part; size > 0; size -= part {
		if l.file.Truncate(size) != nil {
			return
		}
		rest()
	}
}

// Stay closes a file that keeps its name after all.
func (l Leaving) Stay() {
	if l.file != nil {
		_ = l.file.Close() // nothing was written
	}
}

// Remove removes a file whose content nobody needs, even should its name come back
// with a crash. rest is called between small pieces of work.
func Remove(path string, rest func()) error {
	l := Leave(path)
	if err := os.Remove(path); err != nil {
		l.Stay()
		return err
	}
	l.Release(rest)
	return nil
}

// A Writer writes to a file, and has what it wrote begin its way to the disk at
// once, so that a Sync at the end finds little to wait for.
type Writer struct {
	file *os.File
	at   int64
}

// NewWriter returns what writes to an empty file.
func NewWriter(f *os.File) *Writer { return &Writer{file: f} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	begin(w.file, w.at, int64(n))
	w.at += int64(n)
	return n, err
}

// A Syncer flushes files, and leaves the processor to others while the disk works:
// fsync(2) keeps it until Go's scheduler notices, which takes up to 20 ms. Where the
// system has nothing better it is fsync all the same. The zero value is ready; it is
// safe for concurrent use, by one after the other.
type Syncer struct {
	mu    sync.Mutex
	begun bool
	queue *queue // nil: the system has none
}

// Sync does what f.Sync does, with the same errors.
func (s *Syncer) Sync(f *os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun, s.queue = true, newQueue()
	}
	if s.queue != nil {
		if done, err := s.queue.sync(f); done {
			return err
		}
	}
	return f.Sync()
}

// SyncDir makes the names in a directory durable.
func (s *Syncer) SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(s.Sync(dir), dir.Close())
}

// fetchWithin is how long Fetch waits for the disk at most.
const fetchWithin = 100 * time.Millisecond

// Fetch has the beginning of a file in memory, so that the Read that follows does not
// hold a processor until the disk has answered. It is a hint: where the system knows
// no such thing, or the disk takes too long, the Read waits. When f was read last is
// not noted from then on, where the system allows that.
func Fetch(f *os.File) { fetch(f, fetchWithin) }
