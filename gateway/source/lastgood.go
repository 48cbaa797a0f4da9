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

// lastGood is the configuration that a gateway last had in force, on disk,
// sealed: definitions may hold upstream credentials.
//
// The file has a whole bundle and after it what changed since, each as the admin
// sent it: a change costs what it is long, not what everything is. Each record is
// sealed to its place behind the one before it.
type lastGood struct {
	path string
	key  secret.Key

	last  []byte // names the last record in the file; nil: there is none to add to
	whole int    // bytes of the bundle in the file
	added int    // bytes of what follows it

	syncer disk.Syncer
}

// lastGoodPurpose separates the sealing key from other uses of the token.
const lastGoodPurpose = "last good configuration"

// recordsMagic begins the file. Before, it was one sealed bundle.
const recordsMagic = "SLG2"

func newLastGood(dir string, token secret.Value) (*lastGood, error) {
	key, err := secret.DeriveKey(token, lastGoodPurpose)
	if err != nil {
		return nil, fmt.Errorf("last good configuration: %w", err)
	}
	return &lastGood{path: filepath.Join(dir, "last-good.sealed"), key: key}, nil
}

// record seals data behind the record that last names, and returns how it is
// written and its own name.
func (l *lastGood) record(data, last []byte) (written, name []byte, err error) {
	sealed, err := l.key.Seal(data, append([]byte(lastGoodPurpose), last...))
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(sealed)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(sealed))), sealed...), sum[:], nil
}

// replace makes a bundle all that there is: a crash leaves the old copy or the
// new one.
func (l *lastGood) replace(bundle []byte) error {
	l.last = nil // until all went well
	written, name, err := l.record(bundle, nil)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(l.path), ".last-good-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	_, err = tmp.WriteString(recordsMagic)
	if err == nil {
		_, err = tmp.Write(written)
	}
	if err == nil {
		err = l.syncer.Sync(tmp)
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), l.path); err != nil {
		return err
	}
	if err := l.syncer.SyncDir(filepath.Dir(l.path)); err != nil {
		return err
	}
	l.last, l.whole, l.added = name, len(written), 0
	return nil
}

// add writes what changed behind what there is. It needs last.
func (l *lastGood) add(delta []byte) error {
	written, name, err := l.record(delta, l.last)
	l.last = nil // until all went well
	if err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(written)
	if err == nil {
		err = l.syncer.Sync(file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	l.last, l.added = name, l.added+len(written)
	return nil
}

// long tells that what changed takes more room than a bundle would.
func (l *lastGood) long() bool { return l.added > max(l.whole, 1<<20) }

// load returns the copy, or nil when there is none. What was written in part, by
// a gateway that crashed, is left out, and so is all that follows.
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

// cut takes the first record; of one that is not all there, what there is.
func cut(records []byte) (sealed, rest []byte) {
	if len(records) < 4 {
		return nil, nil
	}
	size := min(uint64(binary.BigEndian.Uint32(records)), uint64(len(records)-4))
	return records[4 : 4+size], records[4+size:]
}
