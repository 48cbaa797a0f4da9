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
	"github.com/sluicegate/sluice/internal/disk"
)

// A file is a definition as it was read. It does not change. As there may be very
// many, they stand in one list.
type file struct {
	name string // in the folder
	seen stamp
	sum  [sha256.Size]byte
	api  *definition.API // as far as it could be read, never nil; its id is that of the API that it is about, "" when nobody knows
	err  error           // why it cannot be used
}

// readFile reads a definition, unless the file is what it was when it was read
// as old, which may be nil.
func readFile(folder, name string, old *file, now time.Time) file {
	path := filepath.Join(folder, name)
	info, err := os.Stat(path)
	if err != nil {
		return file{name: name, api: new(definition.API), err: err}
	}
	if old != nil && old.seen.still(info) {
		same := *old
		same.name = name // else the names of every reading before were held on to
		return same
	}
	data, err := readBounded(path, maxFile)
	one := file{name: name, seen: settledStamp(info, now), sum: sha256.Sum256(data), api: new(definition.API), err: err}
	if old != nil && err == nil && old.sum == one.sum {
		one.api, one.err = old.api, old.err // the same, also as an object
		return one
	}
	if err == nil {
		one.api, one.err = definition.ParseAPI(data)
	}
	if one.err == nil && one.api.ID == "" {
		one.api.ID = strings.Clone(strings.TrimSuffix(name, ".json"))
	}
	if one.api.ID == "" && old != nil {
		one.api.ID = old.api.ID // what the file was about before it was broken
	}
	return one
}

func readBounded(path string, limit int64) ([]byte, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	disk.Fetch(r) // of 100,000 files some are not in memory
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %d MiB", limit>>20)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), err
}
