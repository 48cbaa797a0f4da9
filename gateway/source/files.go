package source

import (
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
	"github.com/sluicegate/sluice/internal/pace"
)

// FilesOptions says which files a gateway serves.
type FilesOptions struct {
	AppsDir      string  // folder of *.json, one API definition each
	PoliciesFile string  // JSON object from policy id to policy; "" for no policies
	Watch        bool    // read again when a file changed
	CPU          float64 // share of one processor that reading changes may take; 0: all there are
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
	seen     string      // what the files looked like when they were last looked at
	pace     *pace.Pacer // nil before the first bundle: nothing is served yet

	mu      sync.Mutex
	waiting []chan error  // callers of Reload whose turn has not come
	asked   []chan error  // those that the bundle on its way will answer
	poke    chan struct{} // has one element while somebody waits
}

// NewFiles returns the source.
func NewFiles(opts FilesOptions) *Files {
	return &Files{opts: opts, poke: make(chan struct{}, 1)}
}

// watchEvery is how often the files are looked at for changes; lookShare is how
// much longer the pause is than looking takes, when there are very many.
const (
	watchEvery = time.Second
	lookShare  = 4
)

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
		b, err := f.load(ctx, have)
		if err != nil {
			return nil, err
		}
		if b != nil && (b.Revision != have || len(f.asked) > 0) {
			return b, nil
		}
	}
}

// load reads the files, or returns nil where what is in force has to do. The
// error is ctx's.
func (f *Files) load(ctx context.Context, have string) (*definition.Bundle, error) {
	if f.pace = nil; have != "" {
		f.pace = pace.New(f.opts.CPU)
	}
	var err error
	if f.seen, err = f.look(ctx); err != nil {
		return nil, err
	}
	b, err := f.read(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil:
	case have == "":
		// An empty start beats none: the control API can fill the folder.
		f.opts.Log.Error("reading definitions", "err", err)
		b = &definition.Bundle{Revision: "none", Skipped: []definition.Skipped{{Source: f.opts.AppsDir, Reason: err.Error()}}}
	default:
		f.opts.Log.Error("reading definitions; the last good ones stay in force", "err", err)
		f.answer(err)
	}
	return b, nil
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
		seen, err := f.look(ctx)
		if err != nil || seen != f.seen {
			return true, err
		}
		pause = max(watchEvery, lookShare*time.Since(began))
	}
}

// look returns a text that changes when a file does. The error is ctx's.
func (f *Files) look(ctx context.Context) (string, error) {
	if !f.opts.Watch {
		return "", nil
	}
	f.pace.Begin()
	names, err := f.list(ctx)
	if err != nil {
		return err.Error(), ctx.Err()
	}
	sum := sha256.New()
	for _, name := range names {
		lookAt(sum, filepath.Join(f.opts.AppsDir, name))
		if err := f.pace.Step(ctx); err != nil {
			return "", err
		}
	}
	lookAt(sum, f.opts.PoliciesFile)
	return string(sum.Sum(nil)), nil
}

// lookAt adds what a file looks like.
func lookAt(sum hash.Hash, path string) {
	if info, err := os.Stat(path); err == nil {
		fmt.Fprintf(sum, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
}

// listAtOnce is how many names of files are read at once.
const listAtOnce = 256

// list returns the names of the definition files, in order. A companion document
// "<id>-oas.json" is not an API of its own.
func (f *Files) list(ctx context.Context) ([]string, error) {
	dir, err := os.Open(f.opts.AppsDir)
	if err != nil {
		return nil, fmt.Errorf("apps folder: %w", err)
	}
	defer dir.Close()
	var names []string
	for {
		entries, err := dir.ReadDir(listAtOnce)
		for _, e := range entries {
			if name := e.Name(); !e.IsDir() && isDefinition(name) {
				names = append(names, name)
			}
		}
		switch {
		case err == io.EOF:
			return names, f.sort(ctx, names)
		case err != nil:
			return nil, fmt.Errorf("apps folder: %w", err)
		}
		if err := f.pace.Step(ctx); err != nil {
			return nil, err
		}
	}
}

func isDefinition(name string) bool {
	return strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, "-oas.json") && !strings.HasPrefix(name, ".")
}

// sort puts names in order. Its error is ctx's.
func (f *Files) sort(ctx context.Context, names []string) (err error) {
	compared := 0
	slices.SortFunc(names, func(a, b string) int {
		if compared++; compared%listAtOnce == 0 && err == nil {
			err = f.pace.Step(ctx)
		}
		return strings.Compare(a, b)
	})
	return err
}

// read makes a bundle of the files as they are now.
func (f *Files) read(ctx context.Context) (*definition.Bundle, error) {
	f.pace.Begin()
	names, err := f.list(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.oneText(ctx, names); err != nil {
		return nil, err
	}
	before, err := f.before(ctx, names)
	if err != nil {
		return nil, err
	}
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
		_, _ = sum.Write(append([]byte(one.name+" "), one.sum[:]...)) // a hash takes everything
		enter(b, from, &one)
		known = append(known, one)
	}
	clear(read[len(known):])
	f.known = known
	if err := f.readPolicies(ctx, b, sum); err != nil {
		return nil, err
	}
	b.Revision = hex.EncodeToString(sum.Sum(nil)[:6])
	return b, nil
}

// oneText makes names parts of one text, which is one object to a collection of
// garbage and not as many as there are files. Who keeps one of them for long has to
// copy it. The error is ctx's.
func (f *Files) oneText(ctx context.Context, names []string) error {
	size := 0
	for _, name := range names {
		size += len(name)
	}
	var whole strings.Builder
	whole.Grow(size) // so that it stays where it is
	for i, name := range names {
		whole.WriteString(name)
		names[i] = whole.String()[whole.Len()-len(name):]
		if err := f.pace.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// before returns, for each of names, which are in order, the file as it was last
// read, or nil. The error is ctx's.
func (f *Files) before(ctx context.Context, names []string) ([]*file, error) {
	files, at := make([]*file, len(names)), 0
	for i, name := range names {
		for at < len(f.known) && f.known[at].name < name {
			at++
		}
		if at < len(f.known) && f.known[at].name == name {
			files[i] = &f.known[at]
		}
		if err := f.pace.Step(ctx); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// enter puts what was read from a file into a bundle; from has the file of each id
// in it.
func enter(b *definition.Bundle, from map[string]string, one *file) {
	err := one.err
	if err == nil {
		if first, taken := from[one.api.ID]; taken {
			err = fmt.Errorf("api_id %q is already defined in %s", one.api.ID, first)
		}
	}
	if err != nil {
		b.Skipped = append(b.Skipped, definition.SkippedAPI(strings.Clone(one.name), one.api, err))
		return
	}
	from[one.api.ID] = one.name
	b.APIs = append(b.APIs, one.api)
}

// readPolicies keeps the last good policies when the file is broken. The error
// is ctx's.
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
	_, _ = sum.Write(f.policies.sum[:]) // a hash takes everything
	b.Policies = f.policies.good
	return nil
}
