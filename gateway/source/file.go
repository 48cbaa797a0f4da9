package source

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// A file is a definition as it was read. It does not change.
type file struct {
	info os.FileInfo // nil: not known well enough to tell whether it changed
	sum  [sha256.Size]byte
	api  *definition.API // as far as it could be read, never nil
	id   string          // of the API that it is about, "" when nobody knows
	err  error           // why it cannot be used
}

// settled is how long ago a file must have been changed to be known by its time:
// a second change within one tick of the file system's clock has the same.
const settled = 2 * time.Second

// readFile reads a definition, unless the file is what it was when it was read
// as old, which may be nil.
func readFile(path string, old *file, now time.Time) *file {
	info, err := os.Stat(path)
	if err != nil {
		return &file{api: new(definition.API), err: err}
	}
	if old != nil && unchanged(old.info, info) {
		return old
	}
	data, err := readBounded(path, maxFile)
	one := &file{sum: sha256.Sum256(data), api: new(definition.API), err: err}
	if now.Sub(info.ModTime()) > settled {
		one.info = info
	}
	if old != nil && err == nil && old.sum == one.sum {
		one.api, one.id, one.err = old.api, old.id, old.err // the same, also as an object
		return one
	}
	if err == nil {
		one.api, one.err = definition.ParseAPI(data)
	}
	if one.err == nil && one.api.ID == "" {
		one.api.ID = strings.TrimSuffix(filepath.Base(path), ".json")
	}
	one.id = one.api.ID
	if one.id == "" && old != nil {
		one.id = old.id // what the file was about before it was broken
	}
	return one
}

// unchanged tells whether a file is what it was at a time that is nil when it is
// not known well enough.
func unchanged(before, now os.FileInfo) bool {
	return before != nil && os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

func readBounded(path string, limit int64) ([]byte, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %d MiB", limit>>20)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), err
}
