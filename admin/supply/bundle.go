package supply

import (
	"context"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Bundle is the configuration as gateways take it. It does not change; the
// holder must not either.
type Bundle struct {
	ETag string // changes with each revision and with each reload that is asked for

	held   *holding
	json   func() []byte
	gzip   func() []byte
	zstd   func() []byte
	deltas *deltas
}

// newBundle makes the bundle of what is held. The stored definitions go in as
// they are: they were checked when they were saved, and a gateway checks again.
func newBundle(h *holding) *Bundle {
	b := &Bundle{ETag: h.etag(), held: h, deltas: newDeltas(h)}
	b.json = sync.OnceValue(h.render)
	b.gzip = sync.OnceValue(func() []byte {
		return fasthttp.AppendGzipBytesLevel(nil, b.json(), fasthttp.CompressDefaultCompression)
	})
	b.zstd = sync.OnceValue(func() []byte { return fasthttp.AppendZstdBytes(nil, b.json()) })
	return b
}

// JSON returns all of it, a definition.Bundle. It is made once, when somebody
// asks.
func (b *Bundle) JSON() []byte { return b.json() }

// Gzip returns JSON compressed. It is made once.
func (b *Bundle) Gzip() []byte { return b.gzip() }

// Zstd returns JSON compressed. It is made once.
func (b *Bundle) Zstd() []byte { return b.zstd() }

// Delta returns what leads here from the bundle with the entity tag have, a
// definition.Delta, or nil when that is not known or would be no smaller.
func (b *Bundle) Delta(have string) []byte { return b.deltas.from(have) }

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
	next, err := s.load(ctx)
	if err != nil {
		if s.lifetime.Err() == nil {
			s.log.Warn("gateways keep the configuration they have", "err", err)
		}
		return false
	}
	if next == s.held {
		return true
	}
	s.held = next
	b := newBundle(next)
	s.shelf.put(b)
	s.meters.revision.Set(float64(next.state.Revision))
	s.log.Info("configuration is ready for gateways", "revision", next.state.Revision, "apis", len(next.apis), "policies", len(next.policies))
	return true
}

// load returns the configuration as it is now: by what changed, or all of it
// anew at first, and when somebody asks for a reload, so that whatever may have
// gone astray can be put right.
func (s *Supply) load(ctx context.Context) (*holding, error) {
	if s.held != nil {
		changes, err := s.deps.Store.ChangesSince(ctx, s.held.state.Revision)
		if err != nil {
			return nil, err
		}
		if changes != nil && changes.Generation == s.held.state.Generation {
			return s.held.with(changes), nil
		}
	}
	configuration, err := s.deps.Store.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	return s.held.replacedBy(configuration), nil
}
