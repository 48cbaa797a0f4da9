package source

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// SecretsOptions say which secrets definitions can refer to besides those of the admin.
type SecretsOptions struct {
	Folders []string                         // absolute paths; files below them can be referred to
	Env     func(name string) (string, bool) // os.LookupEnv
}

// Secrets replaces references to secrets in the definitions of another source. An API with
// one that cannot be replaced is left out, so that its last good form stays in service, and
// reported. When a file changes that definitions refer to, Secrets supplies the
// configuration again.
type Secrets struct {
	opts SecretsOptions
	src  Source

	started bool
	came    chan *definition.Bundle // from src
	applied chan outcome            // of that bundle
	last    *definition.Bundle      // that src supplied
	again   bool                    // the bundle that was supplied is last, with other secrets
	known   map[*definition.API]referring
	files   map[string]string // what was read, by path; also what was wrong, with errorMark before it
}

// referring is a definition with references and what came of it.
type referring struct {
	values []string // of the references, in order
	api    *definition.API
	err    error
}

// An outcome is what became of a bundle.
type outcome struct {
	bundle *definition.Bundle
	failed map[string]error
}

// reporter is implemented by sources that report what is in force, also beside Next.
type reporter interface {
	Report(revision string, failed map[string]error)
}

// checkFilesEvery is how often files that definitions refer to are read.
const checkFilesEvery = 5 * time.Second

// NewSecrets returns the source.
func NewSecrets(src Source, o SecretsOptions) *Secrets {
	return &Secrets{opts: o, src: src, came: make(chan *definition.Bundle), applied: make(chan outcome)}
}

// Next implements Source.
func (s *Secrets) Next(ctx context.Context, _ string) (*definition.Bundle, error) {
	if !s.started {
		s.started = true
		go s.follow(ctx)
	}
	for {
		var due <-chan time.Time
		if len(s.files) > 0 {
			due = time.After(checkFilesEvery)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case s.last = <-s.came:
			s.again = false
			return s.resolve(s.last), nil
		case <-due:
			if s.changed() {
				s.again = true
				return s.resolve(s.last), nil
			}
		}
	}
}

// follow takes bundles from the source, one after another.
func (s *Secrets) follow(ctx context.Context) {
	for have := ""; ; {
		b, err := s.src.Next(ctx, have)
		if err != nil {
			return
		}
		select {
		case s.came <- b:
		case <-ctx.Done():
			return
		}
		select {
		case done := <-s.applied:
			s.src.Applied(done.bundle, done.failed)
		case <-ctx.Done():
			return
		}
		have = b.Revision
	}
}

// Applied implements Source.
func (s *Secrets) Applied(b *definition.Bundle, failed map[string]error) {
	if !s.again {
		s.applied <- outcome{b, failed}
		return
	}
	if r, ok := s.src.(reporter); ok {
		r.Report(b.Revision, failed)
	}
}

// changed reports whether a file that definitions refer to differs from what was read.
func (s *Secrets) changed() bool {
	for path, was := range s.files {
		if s.read(path) != was {
			return true
		}
	}
	return false
}

// resolve returns a bundle with references replaced. A definition stays the same object as
// long as its secrets do.
func (s *Secrets) resolve(b *definition.Bundle) *definition.Bundle {
	before := s.known
	s.known, s.files = nil, nil
	if !slices.ContainsFunc(b.APIs, (*definition.API).MayReferToSecrets) {
		return b
	}
	next := *b
	next.APIs, next.Skipped = make([]*definition.API, 0, len(b.APIs)), slices.Clone(b.Skipped)
	s.known, s.files = make(map[*definition.API]referring), make(map[string]string)
	for _, api := range b.APIs {
		if !api.MayReferToSecrets() {
			next.APIs = append(next.APIs, api)
			continue
		}
		one := s.one(before[api], api, b.Secrets[api.OrgID])
		s.known[api] = one
		if one.err != nil {
			next.Skipped = append(next.Skipped, definition.SkippedAPI(api.ID, api, one.err))
		} else {
			next.APIs = append(next.APIs, one.api)
		}
	}
	next.ConfirmedEmpty = b.ConfirmedEmpty || len(b.APIs) > 0 // what is left out is not gone
	return &next
}

// one resolves a definition; before is what came of it last.
func (s *Secrets) one(before referring, api *definition.API, sealed map[string]string) referring {
	uses := api.SecretUses()
	if len(uses) == 0 {
		return referring{api: api}
	}
	values := make(map[definition.SecretRef]string, len(uses))
	wrong := make(map[definition.SecretRef]error)
	var seen []string
	for _, use := range uses {
		value, err := s.lookUp(use.Ref, sealed)
		if err != nil {
			wrong[use.Ref], value = err, errorMark+err.Error()
		}
		values[use.Ref] = value
		seen = append(seen, value)
	}
	if slices.Equal(before.values, seen) {
		return before
	}
	one := referring{values: seen}
	one.api, one.err = api.WithSecrets(func(ref definition.SecretRef) (string, error) { return values[ref], wrong[ref] })
	return one
}

var (
	errNotSet     = errors.New("is not set in the environment of the gateway")
	errNotAllowed = errors.New("is not below a folder of gateway.secret_files")
	errNoFile     = errors.New("is not a regular file")
)

// lookUp returns the secret of a reference.
func (s *Secrets) lookUp(ref definition.SecretRef, sealed map[string]string) (value string, err error) {
	switch ref.Kind {
	case definition.SealedSecret:
		value, there := sealed[ref.Name]
		if !there {
			return "", definition.ErrNoSecret
		}
		return value, nil
	case definition.EnvSecret:
		value, there := s.opts.Env(ref.Name)
		if !there {
			return "", errNotSet
		}
		return value, nil
	}
	value, read := s.files[ref.Name]
	if !read {
		value = s.read(ref.Name)
		s.files[ref.Name] = value
	}
	if wrong, failed := strings.CutPrefix(value, errorMark); failed {
		return "", errors.New(wrong)
	}
	return value, nil
}

// errorMark stands before what is wrong, in place of a secret: no secret begins with it.
const errorMark = "\x00"

// read returns the content of a file, or errorMark and what is wrong.
func (s *Secrets) read(path string) string {
	value, err := s.readFile(path)
	if err != nil {
		return errorMark + err.Error()
	}
	return value
}

// readFile returns the content of a file below one of the folders, without the line end
// that editors append.
func (s *Secrets) readFile(path string) (string, error) {
	for _, folder := range s.opts.Folders {
		below, err := filepath.Rel(folder, path)
		if err != nil || !filepath.IsLocal(below) || below == "." {
			continue
		}
		root, err := os.OpenRoot(folder) // links lead nowhere else
		if err != nil {
			return "", err
		}
		defer func() { _ = root.Close() }()
		return readBelow(root, below)
	}
	return "", errNotAllowed
}

func readBelow(root *os.Root, name string) (string, error) {
	info, err := root.Stat(name) // before opening: opening a named pipe would wait for its writer
	if err != nil {
		return "", plainly(err)
	}
	if !info.Mode().IsRegular() {
		return "", errNoFile
	}
	f, err := root.Open(name)
	if err != nil {
		return "", plainly(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, definition.MaxSecret+3)) // with a line end
	// One byte more than a secret may have is left of a longer one.
	content := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case err != nil:
		return "", plainly(err)
	case strings.Contains(content, errorMark):
		return "", errors.New("holds the character U+0000")
	}
	return content, nil
}

// plainly returns an error without the path, which is said beside it.
func plainly(err error) error {
	if wrapped, ok := errors.AsType[*os.PathError](err); ok {
		return wrapped.Err
	}
	return err
}
