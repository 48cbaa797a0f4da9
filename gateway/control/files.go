package control

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sluicegate/sluice/internal/definition"
)

// FilesOptions say where definitions are.
type FilesOptions struct {
	AppsDir      string // folder of *.json, one API definition each; made when it is not there
	PoliciesFile string // JSON object from policy id to policy; "" refuses to save policies
	Live         Live   // tells which APIs may be in files of other names
}

// Files stores APIs and policies in files, for a gateway without an admin. What
// it stored is not in force before a reload. It is safe for concurrent use in
// one process.
type Files struct {
	opts FilesOptions
	mu   sync.Mutex // held by whoever looks for a file in order to write
}

// NewFiles returns the store. It removes what writers left behind in the folders
// when they were killed.
func NewFiles(opts FilesOptions) (*Files, error) {
	if opts.AppsDir == "" || opts.Live == nil {
		return nil, errors.New("gateway API: AppsDir and Live are required")
	}
	sweep(opts.AppsDir)
	if opts.PoliciesFile != "" {
		sweep(filepath.Dir(opts.PoliciesFile))
	}
	return &Files{opts: opts}, nil
}

// SaveAPI implements Definitions.
func (f *Files) SaveAPI(_ context.Context, api *definition.API, update bool) (string, error) {
	if api.ID == "" {
		named := *api // the caller's stays as it is
		named.ID = newID()
		api = &named
	}
	data, err := indented(api)
	if err != nil {
		return "", broken("The definition could not be encoded", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	file, there, err := f.fileOf(api.ID)
	if err != nil {
		return "", err
	}
	if update && !there && f.opts.Live.API(api.ID) == nil {
		return "", ErrNotFound
	}
	if err := replaceFile(file, data); err != nil {
		return "", unwritten(err)
	}
	return api.ID, nil
}

// DeleteAPI implements Definitions.
func (f *Files) DeleteAPI(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, there, err := f.fileOf(id)
	switch {
	case err != nil:
		return err
	case there:
	case f.opts.Live.API(id) != nil:
		return broken("Delete failed", fmt.Errorf("API %s is in service and none of the files defines it; a reload takes it out of service", id))
	default:
		return ErrNotFound
	}
	if err := removeFile(file); err != nil {
		return broken("Delete failed", err)
	}
	return nil
}

// fileOf returns the file that defines an API, and whether there is one yet. It
// has the API's name, unless people put the definition into another one.
func (f *Files) fileOf(id string) (file string, there bool, err error) {
	if !definition.ValidID(id) {
		return "", false, ErrNotFound // it must not become part of a path
	}
	own := filepath.Join(f.opts.AppsDir, id+".json")
	holds, err := idIn(own)
	taken := err == nil
	switch {
	case taken && (holds == "" || holds == id):
		return own, true, nil
	case !taken && !errors.Is(err, fs.ErrNotExist):
		return "", false, unread(err)
	}
	if f.opts.Live.API(id) != nil {
		if other, err := f.search(id); other != "" || err != nil {
			return other, other != "", err
		}
	}
	if taken {
		return "", false, broken(fmt.Sprintf("%s defines the API %s: rename that file first", filepath.Base(own), holds), nil)
	}
	return own, false, nil
}

// search returns the file that says it defines an API, or "".
func (f *Files) search(id string) (string, error) {
	files, err := filepath.Glob(filepath.Join(literal(f.opts.AppsDir), "*.json"))
	if err != nil {
		return "", unread(err)
	}
	for _, file := range files {
		base := filepath.Base(file)
		if strings.HasSuffix(base, "-oas.json") || strings.HasPrefix(base, ".") {
			continue
		}
		if holds, err := idIn(file); err == nil && holds == id {
			return file, nil
		}
	}
	return "", nil
}

// literal makes a path stand for itself in a pattern.
func literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// idIn returns the api_id that a file gives; "" when it gives none, as one does
// that is not JSON.
func idIn(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var named struct {
		ID string `json:"api_id"`
	}
	_ = json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &named) // no JSON, no id
	return named.ID, nil
}

// newID is a random id of 32 hexadecimal digits.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // documented never to fail
	return hex.EncodeToString(id[:])
}

// indented is JSON for files, which people read.
func indented(value any) ([]byte, error) {
	compact, err := encode(value)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func unread(err error) *Error    { return broken("The files cannot be read: "+err.Error(), err) }
func unwritten(err error) *Error { return broken("The file could not be written: "+err.Error(), err) }
