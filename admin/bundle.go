package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/store"
)

// maxWait is the longest that a gateway may wait for a change in one call.
const maxWait = time.Minute

// Bundle is the configuration as gateways take it. It does not change; the
// holder must not either.
type Bundle struct {
	ETag string // changes with each revision and with each reload that is asked for
	JSON []byte // a definition.Bundle

	gzip func() []byte
	zstd func() []byte
}

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

// now returns the current bundle, nil before the first.
func (s *shelf) now() *Bundle {
	b, _ := s.look()
	return b
}

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

// NextBundle waits until there is a bundle with another entity tag than have,
// and returns it. It returns the one with that tag, or nil when there is none
// at all, once ctx ends or the server shuts down.
func (s *Server) NextBundle(ctx context.Context, have string) *Bundle {
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

// getBundle hands the configuration to a gateway, at once or, when the gateway
// has it already, as soon as it changes.
func (s *Server) getBundle(_ context.Context, c *call) (any, error) {
	wait, err := c.wait()
	if err != nil {
		return nil, err
	}
	s.fleet.heard(c, time.Now())
	have := strings.TrimPrefix(string(c.http.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), "W/")
	s.meters.waiting.Inc()
	// Not the call's own context: its time is for work, and this is waiting.
	ctx, cancel := context.WithTimeout(s.lifetime, wait)
	b := s.NextBundle(ctx, have)
	cancel()
	s.meters.waiting.Dec()
	switch {
	case b == nil:
		return nil, unavailable("The configuration was not read from the database yet; try again")
	case b.ETag == have:
		c.http.Response.Header.Set(fasthttp.HeaderETag, b.ETag)
		c.http.Response.SetStatusCode(fasthttp.StatusNotModified)
	default:
		c.writeBundle(b)
	}
	return nil, nil
}

// wait reads how long a gateway is ready to wait.
func (c *call) wait() (time.Duration, error) {
	text := c.query("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, badRequest(fmt.Sprintf("wait must be a duration such as 30s, not %.40q", text))
	}
	return min(wait, maxWait), nil
}

// writeBundle sends a bundle in the best encoding that the gateway takes. The
// entity tag is that of the content in any encoding.
func (c *call) writeBundle(b *Bundle) {
	body, encoding := b.JSON, ""
	accepted := string(c.http.Request.Header.Peek(fasthttp.HeaderAcceptEncoding))
	switch {
	case accepts(accepted, "zstd"):
		body, encoding = b.zstd(), "zstd"
	case accepts(accepted, "gzip"):
		body, encoding = b.gzip(), "gzip"
	}
	h := &c.http.Response.Header
	h.Set(fasthttp.HeaderETag, b.ETag)
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	h.Set(fasthttp.HeaderCacheControl, "no-store")
	h.SetContentType("application/json")
	if encoding != "" {
		h.Set(fasthttp.HeaderContentEncoding, encoding)
	}
	c.http.Response.SetBodyRaw(body) // shared, and only read from here on
}

// accepts tells whether an Accept-Encoding names an encoding without refusing
// it.
func accepts(accepted, encoding string) bool {
	for part := range strings.SplitSeq(accepted, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), encoding) {
			weight = strings.TrimSpace(weight)
			return !strings.HasPrefix(weight, "q=0") || strings.ContainsAny(strings.TrimPrefix(weight, "q=0"), "123456789")
		}
	}
	return false
}

// reload has every gateway of the installation take its configuration anew.
func (s *Server) reload(ctx context.Context, c *call) (any, error) {
	if err := s.deps.Store.Reload(ctx, c.author(c.source())); err != nil {
		return nil, err
	}
	return done("Reload announced", nil), nil
}

// follow renders the configuration whenever it may have changed.
func (s *Server) follow() {
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
func (s *Server) refresh() bool {
	ctx, cancel := context.WithTimeout(s.lifetime, 2*answerWithin)
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
