package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// FilesOptions says which files a gateway serves.
type FilesOptions struct {
	AppsDir      string // folder of *.json, one API definition each
	PoliciesFile string // JSON object from policy id to policy; "" for no policies
	Watch        bool   // read again when a file changed
	Log          *slog.Logger
}

// Files reads bundles from an apps folder and a policies file.
//
// A file that cannot be read or is not a valid definition is left out and
// reported; the API that was read from it before stays in service.
type Files struct {
	opts FilesOptions

	policies []*definition.Policy // the last good ones
	idOf     map[string]string    // file to the api_id last read from it
	seen     string               // what the files looked like when they were last read

	mu      sync.Mutex
	waiting []chan error  // callers of Reload whose turn has not come
	asked   []chan error  // those that the bundle on its way will answer
	poke    chan struct{} // has one element while somebody waits
}

// NewFiles returns the source.
func NewFiles(opts FilesOptions) *Files {
	return &Files{opts: opts, idOf: make(map[string]string), poke: make(chan struct{}, 1)}
}

// watchEvery is how often the files are looked at for changes.
const watchEvery = time.Second

// maxFile bounds one definition, in bytes; maxPolicies the policies file.
const (
	maxFile     = 4 << 20
	maxPolicies = 256 << 20
)

// Reload reads the files again and returns when what they hold is in force.
// The error names what of it is not.
func (f *Files) Reload(ctx context.Context) error {
	done := make(chan error, 1)
	f.mu.Lock()
	f.waiting = append(f.waiting, done)
	f.mu.Unlock()
	f.wake()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Files) wake() {
	select {
	case f.poke <- struct{}{}:
	default:
	}
}

// Next returns the first bundle at once, and others when somebody asks for a
// reload or, when watching, a file changed.
func (f *Files) Next(ctx context.Context, have string) (*definition.Bundle, error) {
	for due := have == ""; ; {
		f.take()
		if !due && len(f.asked) == 0 {
			changed, err := f.wait(ctx)
			if err != nil {
				return nil, err
			}
			due = changed
			continue
		}
		due = false
		if b := f.load(have); b != nil && (b.Revision != have || len(f.asked) > 0) {
			return b, nil
		}
	}
}

// load reads the files, or returns nil where what is in force has to do.
func (f *Files) load(have string) *definition.Bundle {
	f.seen = f.look()
	b, err := f.read()
	switch {
	case err == nil:
	case have == "":
		// An empty start beats none: the control API can fill the folder.
		f.opts.Log.Error("reading definitions", "err", err)
		b = &definition.Bundle{Revision: "none", Skipped: []definition.Skipped{{Source: f.opts.AppsDir, Reason: err.Error()}}}
	default:
		f.opts.Log.Error("reading definitions; the last good ones stay in force", "err", err)
		f.answer(err)
	}
	return b
}

// take moves the waiting callers to those whom the next bundle answers.
func (f *Files) take() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, f.waiting...)
	f.waiting = nil
}

func (f *Files) answer(err error) {
	for _, done := range f.asked {
		done <- err
	}
	f.asked = nil
}

// Applied answers the callers of Reload.
func (f *Files) Applied(_ *definition.Bundle, failed map[string]error) {
	ids := make([]string, 0, len(failed))
	for id := range failed {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var errs []error
	for _, id := range ids {
		errs = append(errs, fmt.Errorf("%s: %w", id, failed[id]))
	}
	f.answer(errors.Join(errs...))
}

// wait returns when somebody asks for a reload or, when watching, true once a
// file changed since it was read.
func (f *Files) wait(ctx context.Context) (changed bool, err error) {
	var tick <-chan time.Time
	if f.opts.Watch {
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-f.poke:
			return false, nil
		case <-tick:
			if f.look() != f.seen {
				return true, nil
			}
		}
	}
}

// look returns a text that changes when a file does.
func (f *Files) look() string {
	if !f.opts.Watch {
		return ""
	}
	var b strings.Builder
	files, err := f.list()
	if err != nil {
		return err.Error()
	}
	for _, name := range append(files, f.opts.PoliciesFile) {
		if info, err := os.Stat(name); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

// list returns the definition files in order of their names. A companion
// document "<id>-oas.json" is not an API of its own.
func (f *Files) list() ([]string, error) {
	entries, err := os.ReadDir(f.opts.AppsDir)
	if err != nil {
		return nil, fmt.Errorf("apps folder: %w", err)
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".json") || strings.HasSuffix(name, "-oas.json") || strings.HasPrefix(name, ".") {
			continue
		}
		files = append(files, filepath.Join(f.opts.AppsDir, name))
	}
	return files, nil
}

// read makes a bundle of the files as they are now.
func (f *Files) read() (*definition.Bundle, error) {
	files, err := f.list()
	if err != nil {
		return nil, err
	}
	b := &definition.Bundle{ConfirmedEmpty: len(f.asked) > 0}
	sum := sha256.New()
	from := make(map[string]string, len(files))
	for _, file := range files {
		f.readAPI(b, sum, from, file)
	}
	f.readPolicies(b, sum)
	b.Revision = hex.EncodeToString(sum.Sum(nil)[:6])
	return b, nil
}

func (f *Files) readAPI(b *definition.Bundle, sum hash.Hash, from map[string]string, file string) {
	data, err := readBounded(file, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return // deleted since it was listed
	}
	fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(data))
	_, _ = sum.Write(data) // a hash takes everything
	api := new(definition.API)
	if err == nil {
		api, err = definition.ParseAPI(data)
	}
	if err == nil {
		if api.ID == "" {
			api.ID = strings.TrimSuffix(filepath.Base(file), ".json")
		}
		if first, taken := from[api.ID]; taken {
			err = fmt.Errorf("api_id %q is already defined in %s", api.ID, filepath.Base(first))
		}
	}
	if err != nil {
		api.ID = f.lastID(file, api)
		b.Skipped = append(b.Skipped, definition.SkippedAPI(filepath.Base(file), api, err))
		return
	}
	from[api.ID], f.idOf[file] = file, api.ID
	b.APIs = append(b.APIs, api)
}

// lastID finds out which API a file is about that cannot be used.
func (f *Files) lastID(file string, api *definition.API) string {
	if api.ID != "" {
		return api.ID
	}
	return f.idOf[file]
}

// readPolicies keeps the last good policies when the file is broken.
func (f *Files) readPolicies(b *definition.Bundle, sum hash.Hash) {
	if f.opts.PoliciesFile == "" {
		return
	}
	data, err := readBounded(f.opts.PoliciesFile, maxPolicies)
	_, _ = sum.Write(data) // a hash takes everything
	var policies []*definition.Policy
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.policies == nil:
		err = nil // made by the first policy that is saved
	case err == nil:
		policies, err = definition.ParsePolicies(data)
	}
	if err != nil {
		b.Skipped = append(b.Skipped, definition.Skipped{Source: filepath.Base(f.opts.PoliciesFile), Reason: err.Error()})
		policies = f.policies
	}
	f.policies, b.Policies = policies, policies
}

func readBounded(file string, limit int64) ([]byte, error) {
	r, err := os.Open(file)
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
