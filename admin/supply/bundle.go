package supply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/store"
)

// Bundle is the configuration as gateways take it. It does not change; the
// holder must not either.
type Bundle struct {
	ETag string // changes with each revision and with each reload that is asked for
	JSON []byte // a definition.Bundle

	gzip func() []byte
	zstd func() []byte
}

// Gzip returns JSON compressed. It is made once.
func (b *Bundle) Gzip() []byte { return b.gzip() }

// Zstd returns JSON compressed. It is made once.
func (b *Bundle) Zstd() []byte { return b.zstd() }

// render writes a configuration as a bundle. The stored definitions go in as
// they are: they were checked when they were saved, and a gateway checks again.
func render(c *store.Configuration) *Bundle {
	var objects bytes.Buffer
	appendList(&objects, `"apis":[`, c.APIs)
	appendList(&objects, `],"policies":[`, c.Policies)
	objects.WriteByte(']')
	if c.Cleared {
		objects.WriteString(`,"confirmed_empty":true`)
	}
	sum := sha256.Sum256(objects.Bytes())
	body := make([]byte, 0, objects.Len()+64)
	body = fmt.Appendf(body, `{"revision":"%d",%s}`, c.Revision, objects.Bytes())
	return &Bundle{
		ETag: fmt.Sprintf(`"%d-%d-%x"`, c.Revision, c.Generation, sum[:4]),
		JSON: body,
		gzip: sync.OnceValue(func() []byte { return fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressDefaultCompression) }),
		zstd: sync.OnceValue(func() []byte { return fasthttp.AppendZstdBytes(nil, body) }),
	}
}

func appendList(to *bytes.Buffer, opening string, objects [][]byte) {
	to.WriteString(opening)
	for i, o := range objects {
		if i > 0 {
			to.WriteByte(',')
		}
		to.Write(o)
	}
}

// A shelf holds the current bundle, and lets many wait for the next.
type shelf struct {
	mu      sync.Mutex
	current *Bundle
	changed chan struct{} // closed when current is replaced
	closed  bool
}

func newShelf() *shelf { return &shelf{changed: make(chan struct{})} }

// look returns the current bundle and what closes when there is another.
func (s *shelf) look() (*Bundle, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.changed
}

// put replaces the bundle and releases everybody who waits.
func (s *shelf) put(b *Bundle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = b
	if !s.closed {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// close releases everybody who waits, now and later.
func (s *shelf) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.changed)
	}
}

// isClosed tells whether waiting has come to an end for good.
func (s *shelf) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Current returns the newest bundle, nil before the first.
func (s *Supply) Current() *Bundle {
	b, _ := s.shelf.look()
	return b
}

// Next waits until there is a bundle with another entity tag than have, and
// returns it. It returns the one with that tag, or nil when there is none at
// all, once ctx ends or after Release.
func (s *Supply) Next(ctx context.Context, have string) *Bundle {
	s.meters.waiting.Inc()
	defer s.meters.waiting.Dec()
	for {
		b, changed := s.shelf.look()
		if b != nil && b.ETag != have || ctx.Err() != nil || s.shelf.isClosed() {
			return b
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// follow renders the configuration whenever it may have changed.
func (s *Supply) follow() {
	for {
		select {
		case <-s.lifetime.Done():
			return
		case <-s.dirty:
		}
		for wait := 100 * time.Millisecond; !s.refresh(); wait = min(2*wait, 2*time.Second) {
			if !pause(s.lifetime, wait) {
				return
			}
		}
	}
}

// refresh tells whether the configuration was read.
func (s *Supply) refresh() bool {
	ctx, cancel := context.WithTimeout(s.lifetime, 2*workWithin)
	defer cancel()
	configuration, err := s.deps.Store.Configuration(ctx)
	if err != nil {
		if s.lifetime.Err() == nil {
			s.log.Warn("gateways keep the configuration they have", "err", err)
		}
		return false
	}
	b := render(configuration)
	s.shelf.put(b)
	s.meters.revision.Set(float64(configuration.Revision))
	s.log.Info("bundle rendered", "revision", configuration.Revision, "apis", len(configuration.APIs),
		"policies", len(configuration.Policies), "bytes", len(b.JSON))
	return true
}
