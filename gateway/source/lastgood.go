package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluicegate/sluice/internal/disk"
	"github.com/sluicegate/sluice/internal/secret"
)

// lastGood is the configuration that a gateway last had in force, on disk. It is
// encrypted, since definitions may hold upstream credentials.
//
// The file holds a whole bundle followed by deltas, each as the admin sent it, so that
// writing a change takes as long as the change. Each record is bound to the one before
// it.
type lastGood struct {
	path string
	key  secret.Key

	last  []byte // name of the last record; nil: deltas cannot be added
	whole int    // bytes of the bundle in the file
	added int    // bytes of what follows it
}

// lastGoodPurpose separates the sealing key from other uses of the token.
const lastGoodPurpose = "last good configuration"

// recordsMagic begins the file. Older files are one encrypted bundle.
const recordsMagic = "SLG2"

// newLastGood returns the copy in a directory. It is encrypted with token; one that former
// encrypted, which may be empty, can be read as well.
func newLastGood(dir string, token, former secret.Value) (*lastGood, error) {
	key, err := secret.DeriveKeyAfter(token, former, lastGoodPurpose)
	if err != nil {
		return nil, fmt.Errorf("last good configuration: %w", err)
	}
	return &lastGood{path: filepath.Join(dir, "last-good.sealed"), key: key}, nil
}

// record encrypts data as the record after last, and returns the bytes to write and the
// name of the record.
func (l *lastGood) record(data, last []byte) (written, name []byte, err error) {
	sealed, err := l.key.Seal(data, append([]byte(lastGoodPurpose), last...))
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(sealed)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(sealed))), sealed...), sum[:], nil
}

// replace writes a new file with a bundle. A crash leaves the old file or the new one.
func (l *lastGood) replace(bundle []byte) error {
	l.last = nil // unless all goes well
	written, name, err := l.record(bundle, nil)
	if err != nil {
		return err
	}
	if err := disk.WriteFile(l.path, append([]byte(recordsMagic), written...), 0o600); err != nil {
		return err
	}
	l.last, l.whole, l.added = name, len(written), 0
	return nil
}

// add appends a delta. last must not be nil.
func (l *lastGood) add(delta []byte) error {
	written, name, err := l.record(delta, l.last)
	l.last = nil // unless all goes well
	if err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(written)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	l.last, l.added = name, l.added+len(written)
	return nil
}

// long reports whether the deltas are larger than a bundle would be.
func (l *lastGood) long() bool { return l.added > max(l.whole, 1<<20) }

// load returns the copy, or nil if there is none. It ends before the first record that a
// crash left incomplete.
func (l *lastGood) load(ctx context.Context) (*held, error) {
	l.last = nil
	file, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var h *held
	rest, records := bytes.CutPrefix(file, []byte(recordsMagic))
	if !records {
		rest = append(binary.BigEndian.AppendUint32(nil, uint32(len(file))), file...)
	}
	for last := []byte(nil); len(rest) > 0; {
		sealed, after := cut(rest)
		data, err := l.key.Open(sealed, append([]byte(lastGoodPurpose), last...))
		switch {
		case err != nil:
		case h == nil:
			h, err = h.replacedBy(ctx, nil, data)
		default:
			var next *held
			if next, err = h.with(ctx, nil, data); err == nil {
				h = next
			}
		}
		if err != nil && h == nil {
			return nil, fmt.Errorf("%s: %w", l.path, err)
		}
		if err != nil {
			break
		}
		sum := sha256.Sum256(sealed)
		last, rest = sum[:], after
	}
	return h, nil
}

// cut returns the first record, which may be incomplete.
func cut(records []byte) (sealed, rest []byte) {
	if len(records) < 4 {
		return nil, nil
	}
	size := min(uint64(binary.BigEndian.Uint32(records)), uint64(len(records)-4))
	return records[4 : 4+size], records[4+size:]
}
