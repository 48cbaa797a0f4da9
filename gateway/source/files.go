package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/pace"
)

// FilesOptions names the files that a gateway serves.
type FilesOptions struct {
	AppsDir      string   // folder of *.json, one API definition each
	PoliciesFile string   // JSON object from policy id to policy; "" for no policies
	Tags         []string // APIs with one of these are served, and those without any; nil: all
	Watch        bool     // read files again when they change
	CPU          float64  // share of one CPU that reading changes may take; 0: no limit
	Log          *slog.Logger
}

// Files reads bundles from an apps folder and a policies file.
//
// A file that cannot be read or is not a valid definition is left out and
// reported; the API that was read from it before stays in service.
type Files struct {
	opts FilesOptions

	known    []file // as last read, in order of their names
	policies policyFile
	seen     string      // hash of the sizes and times of the files when they were last checked
	pace     *pace.Pacer // nil before the first bundle: nothing is served yet

	mu      sync.Mutex
	waiting []chan error  // callers of Reload that no load answers yet
	asked   []chan error  // callers that the current load will answer
	poke    chan struct{} // has one element while callers wait
}

// NewFiles returns the source.
func NewFiles(opts FilesOptions) *Files {
	return &Files{opts: opts, poke: make(chan struct{}, 1)}
}

// watchEvery is how often files are checked for changes. When there are very many, the
// pause is pauseShare times as long as the check.
const (
	watchEvery = time.Second
	pauseShare = 4
)

// maxFile bounds one definition, in bytes; maxPolicies the policies file.
const (
	maxFile     = 4 << 20
	maxPolicies = 256 << 20
)

// Reload reads the files again and returns when they are in force. The error names
// definitions that are not served as written.
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

// Next returns the first bundle at once, and further ones after Reload or, when
// watching, after a file has changed.
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
		b, err := f.load(ctx, have)
		if err != nil {
			return nil, err
		}
		if b != nil && (b.Revision != have || len(f.asked) > 0) {
			return b, nil
		}
	}
}

// load reads the files, or returns nil if that fails and the bundle in force stays. The
// error is that of ctx.
func (f *Files) load(ctx context.Context, have string) (*definition.Bundle, error) {
	if f.pace = nil; have != "" {
		f.pace = pace.New(f.opts.CPU)
	}
	var err error
	if f.seen, err = f.fingerprint(ctx); err != nil {
		return nil, err
	}
	b, err := f.read(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil:
	case have == "":
		// Starting empty is better than failing: the gateway API can fill the folder.
		f.opts.Log.Error("reading definitions", "err", err)
		b = &definition.Bundle{Revision: "none", Skipped: []definition.Skipped{{Source: f.opts.AppsDir, Reason: err.Error()}}}
	default:
		f.opts.Log.Error("reading definitions; the last good ones stay in force", "err", err)
		f.answer(err)
	}
	return b, nil
}

// take moves the waiting callers to those that the next bundle answers.
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
	for pause := watchEvery; ; {
		if f.opts.Watch {
			tick = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-f.poke:
			return false, nil
		case <-tick:
		}
		began := time.Now()
		seen, err := f.fingerprint(ctx)
		if err != nil || seen != f.seen {
			return true, err
		}
		pause = max(watchEvery, pauseShare*time.Since(began))
	}
}

// fingerprint returns a text that changes when a file does. The error is ctx's.
func (f *Files) fingerprint(ctx context.Context) (string, error) {
	if !f.opts.Watch {
		return "", nil
	}
	f.pace.Begin()
	names, err := f.list()
	if err != nil {
		return err.Error(), nil
	}
	sum := sha256.New()
	for _, name := range names {
		addFile(sum, filepath.Join(f.opts.AppsDir, name))
		if err := f.pace.Step(ctx); err != nil {
			return "", err
		}
	}
	addFile(sum, f.opts.PoliciesFile)
	return string(sum.Sum(nil)), nil
}

// addFile adds the size and time of a file.
func addFile(sum hash.Hash, path string) {
	if info, err := os.Stat(path); err == nil {
		fmt.Fprintf(sum, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
}

// list returns the names of the definition files in alphabetical order. A companion
// document "<id>-oas.json" is not an API of its own.
func (f *Files) list() ([]string, error) {
	entries, err := os.ReadDir(f.opts.AppsDir)
	if err != nil {
		return nil, fmt.Errorf("apps folder: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && isDefinition(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func isDefinition(name string) bool {
	return strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, "-oas.json") && !strings.HasPrefix(name, ".")
}

// read returns a bundle of the files as they are now.
func (f *Files) read(ctx context.Context) (*definition.Bundle, error) {
	f.pace.Begin()
	names, err := f.list()
	if err != nil {
		return nil, err
	}
	before := f.before(names)
	now, read := time.Now(), make([]file, len(names))
	err = pace.Each(ctx, f.pace, len(names), func(i int) { read[i] = readFile(f.opts.AppsDir, names[i], before[i], now) })
	if err != nil {
		return nil, err
	}
	b := &definition.Bundle{ConfirmedEmpty: len(f.asked) > 0}
	sum := sha256.New()
	from := make(map[string]string, len(names))
	known := read[:0]
	for i := range read {
		if err := f.pace.Step(ctx); err != nil {
			return nil, err
		}
		one := read[i]
		if errors.Is(one.err, fs.ErrNotExist) {
			continue // deleted since it was listed
		}
		_, _ = sum.Write(append([]byte(one.name+" "), one.sum[:]...)) // never fails
		enter(b, from, &one)
		f.warn(before[i], &one)
		known = append(known, one)
	}
	clear(read[len(known):])
	f.known = known
	if err := f.readPolicies(ctx, b, sum); err != nil {
		return nil, err
	}
	b.Revision = hex.EncodeToString(sum.Sum(nil)[:6])
	b.KeepServed(f.opts.Tags)
	return b, nil
}

// before returns, for each of the sorted names, the file as it was last read, or nil.
func (f *Files) before(names []string) []*file {
	files, at := make([]*file, len(names)), 0
	for i, name := range names {
		for at < len(f.known) && f.known[at].name < name {
			at++
		}
		if at < len(f.known) && f.known[at].name == name {
			files[i] = &f.known[at]
		}
	}
	return files
}

// enter adds a file to a bundle; from maps the ids in it to their files.
func enter(b *definition.Bundle, from map[string]string, one *file) {
	err := one.err
	if err == nil {
		if first, taken := from[one.api.ID]; taken {
			err = fmt.Errorf("api_id %q is already defined in %s", one.api.ID, first)
		}
	}
	if err != nil {
		b.Skipped = append(b.Skipped, definition.SkippedAPI(one.name, one.api, err))
		return
	}
	from[one.api.ID] = one.name
	b.APIs = append(b.APIs, one.api)
}

// warn logs the members of a new definition that have no effect.
func (f *Files) warn(old, one *file) {
	if one.err != nil || old != nil && old.api == one.api {
		return
	}
	if unknown := one.api.UnknownMembers(); len(unknown) > 0 {
		f.opts.Log.Warn("a definition has members without an effect", "file", one.name, "api", one.api.ID, "members", unknown.Texts())
	}
}

// readPolicies adds the policies, or the last good ones if the file is broken. The error
// is that of ctx.
func (f *Files) readPolicies(ctx context.Context, b *definition.Bundle, sum hash.Hash) error {
	if f.opts.PoliciesFile == "" {
		return nil
	}
	broken := f.policies.read(ctx, f.pace, f.opts.PoliciesFile)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if broken != nil {
		b.Skipped = append(b.Skipped, definition.Skipped{Source: filepath.Base(f.opts.PoliciesFile), Reason: broken.Error()})
	}
	if unknown := f.policies.takeUnknown(); len(unknown) > 0 {
		f.opts.Log.Warn("policies have members without an effect", "file", filepath.Base(f.opts.PoliciesFile), "members", unknown)
	}
	_, _ = sum.Write(f.policies.sum[:]) // never fails
	b.Policies = f.policies.good
	return nil
}
