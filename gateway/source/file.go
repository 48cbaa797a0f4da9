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
	name string // in the folder
	seen stamp
	sum  [sha256.Size]byte
	api  *definition.API // as far as it could be parsed, never nil; its id may be that of the last good reading, or "" if unknown
	err  error           // why it cannot be used
}

// readFile reads a definition, unless the file has not changed since it was read as old,
// which may be nil.
func readFile(folder, name string, old *file, now time.Time) file {
	path := filepath.Join(folder, name)
	info, err := os.Stat(path)
	if err != nil {
		return file{name: name, api: new(definition.API), err: err}
	}
	if old != nil && old.seen.still(info) {
		return *old
	}
	data, err := readBounded(path, maxFile)
	one := file{name: name, seen: settledStamp(info, now), sum: sha256.Sum256(data), api: new(definition.API), err: err}
	if old != nil && err == nil && old.sum == one.sum {
		one.api, one.err = old.api, old.err // keeps the object
		return one
	}
	if err == nil {
		one.api, one.err = definition.ParseFileAPI(data)
	}
	if one.err == nil && one.api.ID == "" {
		one.api.ID = strings.TrimSuffix(name, ".json")
	}
	if one.api.ID == "" && old != nil {
		one.api.ID = old.api.ID // of the last good reading
	}
	return one
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
