package keystore

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/disk"
)

// compact replaces the journal by one that has every session once. The old one stays
// until the new one is on disk; a failure is logged, and tried again later. An error
// means that it is unknown which of the two a restart would find.
func (s *File) compact() error {
	next, err := s.rewrite(s.path + ".new")
	if err != nil {
		s.log.Warn("key journal not rewritten; it keeps growing", "path", s.path, "err", err)
		return nil
	}
	if err := disk.SyncDir(filepath.Dir(s.path)); err != nil {
		_ = next.file.Close()
		return fmt.Errorf("%w: replacing %s: %w", ErrUnavailable, s.path, err)
	}
	_ = s.file.Close() // it was replaced
	s.file, s.end, s.number, s.records = next.file, next.end, next.number, next.records
	return nil
}

// A draft is a journal that is being rewritten.
type draft struct {
	file    *os.File
	payload []byte
	replay
}

// rewrite writes every session to a new journal at path and gives it the journal's
// name.
func (s *File) rewrite(path string) (*draft, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, journalMode)
	if err != nil {
		return nil, err
	}
	d := &draft{file: f}
	err = s.all(d.add)
	if err == nil {
		err = d.flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(path, s.path)
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(path)
		return nil, err
	}
	return d, nil
}

func (d *draft) add(hash string, session *definition.Session) error {
	line, err := record{Hash: hash, Session: session}.line()
	if err != nil {
		return err
	}
	d.payload = append(d.payload, line...)
	d.records++
	if len(d.payload) < maxBatch {
		return nil
	}
	return d.flush()
}

func (d *draft) flush() error {
	if len(d.payload) == 0 {
		return nil
	}
	frame := appendFrame(nil, d.number+1, d.payload)
	n, err := d.file.WriteAt(frame, d.end)
	d.end += int64(n)
	d.number++
	d.payload = d.payload[:0]
	return err
}
