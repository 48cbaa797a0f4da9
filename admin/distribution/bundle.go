package distribution

import (
	"context"
	"sync"
	"time"

	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/valyala/fasthttp"
)

// Bundle is the configuration as gateways load it. It is immutable, and so is what its
// methods return.
type Bundle struct {
	ETag string // changes with each revision, reload and clearing of caches

	held   *snapshot
	json   func() []byte
	gzip   func() []byte
	zstd   func() []byte
	deltas *deltas
}

// newBundle returns the bundle of a snapshot. The stored definitions are not parsed:
// they were validated when they were saved, and the gateway validates them again.
func newBundle(h *snapshot) *Bundle {
	b := &Bundle{ETag: h.etag(), held: h, deltas: newDeltas(h)}
	b.json = sync.OnceValue(h.render)
	b.gzip = sync.OnceValue(func() []byte {
		return fasthttp.AppendGzipBytesLevel(nil, b.json(), fasthttp.CompressDefaultCompression)
	})
	b.zstd = sync.OnceValue(func() []byte { return fasthttp.AppendZstdBytes(nil, b.json()) })
	return b
}

// JSON returns the bundle, a definition.Bundle. It is encoded once, on demand.
func (b *Bundle) JSON() []byte { return b.json() }

// Gzip returns JSON compressed with gzip, once, on demand.
func (b *Bundle) Gzip() []byte { return b.gzip() }

// Zstd returns JSON compressed with zstd, once, on demand.
func (b *Bundle) Zstd() []byte { return b.zstd() }

// Delta returns the definition.Delta from the bundle with the entity tag have, or nil
// if it is unknown or would not be smaller.
func (b *Bundle) Delta(have string) []byte { return b.deltas.from(have) }

// A latestBundle holds the current bundle, for many goroutines to wait for the next.
type latestBundle struct {
	mu      sync.Mutex
	current *Bundle
	changed chan struct{} // closed when current is replaced
	closed  bool
}

func newLatestBundle() *latestBundle { return &latestBundle{changed: make(chan struct{})} }

// get returns the current bundle, and a channel that is closed when there is another.
func (s *latestBundle) get() (*Bundle, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.changed
}

// put replaces the bundle and ends all waits.
func (s *latestBundle) put(b *Bundle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = b
	if !s.closed {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// close ends all waits, now and later.
func (s *latestBundle) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.changed)
	}
}

// isClosed reports whether close was called.
func (s *latestBundle) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Current returns the newest bundle, nil before the first.
func (s *Service) Current() *Bundle {
	b, _ := s.latestBundle.get()
	return b
}

// Changed returns a channel that is closed when there is another bundle. After Release
// it is nil.
func (s *Service) Changed() <-chan struct{} {
	_, changed := s.latestBundle.get()
	if s.latestBundle.isClosed() {
		return nil
	}
	return changed
}

// Next waits for a bundle whose entity tag is not have, and returns it. When ctx ends,
// and after Release, it returns the current bundle, or nil if there is none. The bundle
// is that for gateways with tags, or with nil for all gateways.
func (s *Service) Next(ctx context.Context, have string, tags []string) *Bundle {
	s.meters.waiting.Inc()
	defer s.meters.waiting.Dec()
	for {
		b, changed := s.latestBundle.get()
		if b != nil && tags != nil {
			b = s.segments.of(b, tags)
		}
		if b != nil && b.ETag != have || ctx.Err() != nil || s.latestBundle.isClosed() {
			return b
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// follow renders the configuration whenever it may have changed.
func (s *Service) follow() {
	for {
		select {
		case <-s.lifetime.Done():
			return
		case <-s.dirty:
		}
		for wait := 100 * time.Millisecond; !s.refresh(); wait = min(2*wait, 2*time.Second) {
			if sleep.For(s.lifetime, wait) != nil {
				return
			}
		}
	}
}

// refresh renders the current configuration, and reports whether it could be read.
func (s *Service) refresh() bool {
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
	s.latestBundle.put(b)
	s.meters.revision.Set(float64(next.state.Revision))
	s.log.Info("configuration is ready for gateways", "revision", next.state.Revision, "apis", len(next.apis), "policies", len(next.policies))
	return true
}

// load returns the current configuration. It applies what changed since the last one;
// at first, and after a reload was asked for, it reads everything, so that a reload
// repairs whatever may be wrong.
func (s *Service) load(ctx context.Context) (*snapshot, error) {
	if s.held != nil {
		changes, err := s.deps.Store.ChangesSince(ctx, s.held.state)
		if err != nil {
			return nil, err
		}
		if changes != nil && changes.Generation == s.held.state.Generation {
			next := s.held.with(changes)
			if changes.Secrets != nil {
				next.secrets = s.openAll(changes.Secrets)
			}
			return next, nil
		}
	}
	configuration, err := s.deps.Store.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	next := s.held.replacedBy(configuration)
	next.secrets = s.openAll(configuration.Secrets)
	return next, nil
}
