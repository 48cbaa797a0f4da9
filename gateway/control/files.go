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

// FilesOptions name the files of definitions.
type FilesOptions struct {
	AppsDir      string // folder of *.json, one API definition each; created if missing
	PoliciesFile string // JSON object from policy id to policy; "": policies cannot be saved
	Live         Live   // its APIs may be defined in files of other names
}

// Files stores APIs and policies in files, for a gateway without an admin. Changes are
// in force after a reload. It is safe for concurrent use in one process.
type Files struct {
	opts FilesOptions
	mu   sync.Mutex // held while a file is searched and written
}

// NewFiles returns the store. It removes temporary files of writers that were killed.
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
		named := *api // the caller's is not changed
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

// Saved returns an API as its file defines it, also before it is in force; nil if there is
// none that can be read.
func (f *Files) Saved(id string) *definition.API {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, there, err := f.fileOf(id)
	if err != nil || !there {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	api, err := definition.ParseAPI(data)
	if err != nil {
		return nil
	}
	return api
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

// fileOf returns the file that defines an API, and whether it exists. The file is named
// for the API, unless the definition was put into another one by hand.
func (f *Files) fileOf(id string) (file string, there bool, err error) {
	if !definition.ValidID(id) {
		return "", false, ErrNotFound // must not become part of a path
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

// search returns the file with the definition of an API, or "".
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

// literal escapes a path for use in a pattern.
func literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// idIn returns the api_id in a file, or "" if there is none or the file is not JSON.
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

// newID returns a random id of 32 hexadecimal digits.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // documented never to fail
	return hex.EncodeToString(id[:])
}

// indented returns JSON that people can read in a file.
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
