package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/internalcall"
	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/http1"
)

// A Fetcher makes requests of the gateway's own to one upstream, over the connections that
// requests of clients have, or to another API. Any number of them can be made for one
// exchange at the same time, by any goroutine.
type Fetcher struct {
	api         *pipeline.APIRef // that is called; nil: an upstream is
	address     string
	pool        *pool
	version     string // what follows the target
	dialTimeout time.Duration
	retries     int
	log         failureLog
	counts      *sourceCounts
}

// A FetcherHolder is a stage that makes requests by Fetchers.
type FetcherHolder interface {
	pipeline.Stage
	// Fetchers returns all that the stage uses.
	Fetchers() []*Fetcher
}

// A Fetch is a request of a Fetcher.
type Fetch struct {
	Method string
	Target string // path and query, beginning with a slash
	Lines  []byte // header lines, each ended by CRLF, without those that say where the message goes and ends
	Body   []byte
	Within time.Duration // until the whole response must have come; more than 0
	Most   int           // bytes of the response's body
	Trace  pipeline.Trace
}

// A Fetched is a whole response.
type Fetched struct {
	Status  int
	Lines   []byte // header lines, each ended by CRLF, without those for the connection alone
	Body    []byte
	Address string // host and port that answered, or svc:// and the name of an API that did itself
	Retries int    // further requests that were sent for it

	Began, Ended time.Time
}

// IsEncoded reports whether the body is compressed, or encoded otherwise.
func (r *Fetched) IsEncoded() bool {
	for line := range bytes.Lines(r.Lines) {
		name, value, _ := bytes.Cut(line, []byte{':'})
		if http1.EqualFold(name, "Content-Encoding") && !http1.EqualFold(http1.Trim(bytes.TrimRight(value, "\r\n")), "identity") {
			return true
		}
	}
	return false
}

// OriginOf returns the part of a URL that is the same in all requests of a Fetcher: scheme
// and host, or svc:// and the name of an API.
func OriginOf(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[:i]
	}
	return scheme + "://" + rest
}

// CompileFetcher returns what makes requests to an origin, for an API whose
// proxy.transport and upstream_certificates hold for them as for those to its upstream. name
// is that of the origin in logs.
func CompileFetcher(def *definition.API, name, origin string, pools *Pools, conf Config) (*Fetcher, error) {
	if definition.IsInternal(origin) {
		if wrong := definition.CheckInternal(origin); wrong != "" {
			return nil, errors.New(wrong)
		}
		api, _ := definition.SplitInternal(origin)
		return &Fetcher{api: new(internalcall.RefOf(def, api)), address: origin, counts: pools.newCounts(def.ID, name)}, nil
	}
	target, err := match.CompileTarget(origin)
	if err != nil {
		return nil, err
	}
	p, _, err := pools.connections(def, target, &conf)
	if err != nil {
		return nil, err
	}
	own := transportOf(def)
	return &Fetcher{
		address: target.Address, pool: p, version: p.versionFor(target.Host), dialTimeout: seconds(own.DialTimeout, conf.DialTimeout),
		retries: conf.Retries, counts: pools.newCounts(def.ID, name),
		log: failureLog{log: conf.Log, api: def.ID, source: name, address: target.Address},
	}, nil
}

// ErrTooLarge is the error of a response whose body has more bytes than it may have.
var ErrTooLarge = errors.New("the response is too large")

// A RefusedError is a request to another API that did not reach it.
type RefusedError struct{ *pipeline.Rejection }

// Error implements error.
func (r RefusedError) Error() string { return r.Message }

// IsTimeout reports whether a request has failed for want of time: to connect, or to have
// the whole response.
func IsTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// IsDenied reports whether a request has failed because its address may not be called.
func IsDenied(err error) bool {
	_, denied := errors.AsType[*dialguard.DeniedError](err)
	return denied || errors.Is(err, dialguard.ErrNever) || errors.Is(err, dialguard.ErrPrivate)
}

// Do makes a request for an exchange and reads the whole response. Once ctx ends it returns
// the error of ctx, and gives the request up. Other failures of upstreams are logged. With an
// error the response has neither a status nor a body.
func (f *Fetcher) Do(ctx context.Context, ex *pipeline.Exchange, q *Fetch) (got Fetched, err error) {
	began := time.Now()
	if f.api != nil {
		got, err = f.handOver(ctx, ex, q)
	} else {
		got, err = f.send(ctx, q)
	}
	if got.Address == "" {
		got.Address = f.address
	}
	if got.Began, got.Ended = began, time.Now(); err != nil {
		got.Status, got.Lines, got.Body = 0, nil, nil
	}
	if ctx.Err() == nil && (ex == nil || !ex.IsUncounted()) {
		f.counts.count(got.Status, got.Ended.Sub(began))
	}
	switch {
	case err == nil:
		return got, nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case f.api == nil:
		f.log.report(rejectionFor(err).Reason, err)
	}
	return got, err
}

// send has an upstream answer a request.
func (f *Fetcher) send(ctx context.Context, q *Fetch) (Fetched, error) {
	buf := requests.Get().(*[]byte)
	t := fetching{f: f, ctx: ctx, fetch: q, request: f.appendRequest((*buf)[:0], q), until: f.pool.now() + q.Within}
	err := t.send()
	if *buf = t.request; cap(*buf) > 2*maxGather {
		*buf = nil
	}
	requests.Put(buf)
	return t.got, err
}

// handOver has another API answer a request.
func (f *Fetcher) handOver(ctx context.Context, ex *pipeline.Exchange, q *Fetch) (got Fetched, err error) {
	var left atomic.Bool
	late := time.AfterFunc(q.Within, func() { left.Store(true) })
	defer late.Stop()
	defer context.AfterFunc(ctx, func() { left.Store(true) })()
	own := ex.Branch(&pipeline.Branch{Method: q.Method, Lines: q.Lines, Body: q.Body, Trace: &q.Trace, Left: &left})
	defer own.EndBranch()
	verdict := own.Internal.Call(own, f.api, []byte(q.Target))
	a := own.Answer
	if a.Stream != nil {
		began := time.Now()
		own.Settle()
		got.Body, err = io.ReadAll(io.LimitReader(a.Stream, int64(q.Most)+1))
		_ = a.Stream.Close() // what it could say was said by Read
		end := time.Now()
		own.Upstream.Duration += end.Sub(began)
		own.Streamed(end)
	} else if !a.NoBody {
		got.Body = bytes.Clone(a.Body)
	}
	got.Status, got.Lines, got.Address, got.Retries = a.Status, bytes.Clone(a.Lines), own.Upstream.Address, int(own.Upstream.Retries)
	switch {
	case left.Load() && (err != nil || verdict == pipeline.Rejected):
		return got, os.ErrDeadlineExceeded
	case verdict == pipeline.Rejected && !own.RefusedByChild():
		return got, RefusedError{own.Rejection}
	case err == nil && len(got.Body) > q.Most:
		return got, ErrTooLarge
	}
	return got, err
}

// AppendTrace appends the header lines by which a request of the gateway's own is part of the
// trace of a client's request.
func AppendTrace(dst []byte, call *wire.Call, t *pipeline.Trace) []byte {
	if t.Own {
		dst = append(t.AppendParent(append(dst, "Traceparent: "...)), "\r\n"...)
	}
	for i := range call.Fields {
		f := &call.Fields[i]
		if f.Name == wire.NameTraceparent && !t.Own || f.Name == wire.NameTracestate && !t.Stateless {
			dst = append(dst, call.Lines[f.Start:f.End]...)
		}
	}
	return dst
}

// requests are buffers of requests.
var requests = sync.Pool{New: func() any { return new([]byte) }}

// appendRequest appends the head of a request, and its body if that is not large.
func (f *Fetcher) appendRequest(dst []byte, q *Fetch) []byte {
	dst = append(append(dst, q.Method...), ' ')
	dst = escapeTarget(append(dst, q.Target...), len(dst))
	dst = append(append(dst, f.version...), q.Lines...)
	if len(q.Body) > 0 || expectsBody([]byte(q.Method)) {
		dst = appendFraming(dst, int64(len(q.Body)))
	}
	dst = append(dst, "\r\n"...)
	if len(q.Body) > maxGather {
		return dst
	}
	return append(dst, q.Body...)
}

// fetching is one request and the attempts to have it answered.
type fetching struct {
	f       *Fetcher
	ctx     context.Context
	fetch   *Fetch
	request []byte
	until   time.Duration
	head    head
	got     Fetched
}

// send tries connections until one gives a response, or the request must not be sent again.
func (t *fetching) send() error {
	p := t.f.pool
	c, err := p.takeIdle(), error(nil)
	if c == nil {
		c, err = p.take(t.ctx, t.dialWithin())
	}
	stale := 0
	for err == nil {
		if err = t.run(c); err == nil {
			return nil
		}
		fresh := false
		switch {
		case t.ctx.Err() != nil:
			c.drop()
			return err
		case err == errStale && c.reused:
			stale++
			fresh = stale >= maxStale
		case c.reused && !c.answered && isDisconnect(err) && t.got.Retries < t.f.retries && isIdempotent([]byte(t.fetch.Method)):
			t.got.Retries++
			fresh = t.got.Retries >= t.f.retries
		default:
			c.drop()
			return err
		}
		c, err = p.replace(t.ctx, c, fresh, t.dialWithin())
	}
	return err
}

// dialWithin returns how long a connection may take.
func (t *fetching) dialWithin() time.Duration { return min(t.f.dialTimeout, t.until-t.f.pool.now()) }

// run sends the request on a connection and reads the response. Without an error the
// connection is no longer the caller's.
func (t *fetching) run(c *conn) error {
	if err := c.begin(t.f.pool.now(), t.until, wire.Client{}); err != nil {
		return err
	}
	stop := context.AfterFunc(t.ctx, func() { _ = c.tcp.Close() })
	err := t.exchange(c)
	if over := !stop(); err == nil {
		c.finish(!over && t.keeps(), t.f.pool.now())
	}
	return err
}

// keeps reports whether the connection can serve another request.
func (t *fetching) keeps() bool {
	h := &t.head
	switch {
	case h.status == 204:
		return h.reusable() && h.length <= 0 && !h.chunked // something may still come that is no response
	case t.bodyless():
		return h.reusable()
	}
	return h.reusable() && (h.chunked || h.length >= 0)
}

// exchange sends the request and reads the response.
func (t *fetching) exchange(c *conn) (err error) {
	apart := len(t.fetch.Body) > maxGather
	if err := c.send(t.request, !apart); err != nil {
		return err
	}
	if apart {
		if _, err := c.write(t.fetch.Body); err != nil {
			return err
		}
	}
	if t.got.Lines, err = c.readHead(&t.head, nil, false); err != nil {
		return err
	}
	if t.got.Status = t.head.status; t.bodyless() {
		return nil
	}
	t.got.Body, err = t.body(c)
	return err
}

func (t *fetching) bodyless() bool { return t.head.bodyless([]byte(t.fetch.Method)) }

// body reads the body of the response.
func (t *fetching) body(c *conn) (body []byte, err error) {
	h, most := &t.head, t.fetch.Most
	if h.length > int64(most) && !h.chunked {
		return nil, ErrTooLarge
	}
	body = make([]byte, 0, max(min(h.length, maxWhole), 0))
	var k http1.Chunks
	for {
		switch {
		case h.chunked:
			if body, err = appendChunks(body, c, &k); err != nil || k.Done() && len(body) <= most {
				return body, err
			}
		case h.length >= 0:
			n := int(min(int64(c.w-c.r), h.length-int64(len(body))))
			body = append(body, c.buf[c.r:c.r+n]...)
			if c.r += n; int64(len(body)) == h.length {
				return body, nil
			}
		default:
			body = append(body, c.buf[c.r:c.w]...)
			c.r = c.w
		}
		if len(body) > most {
			return nil, ErrTooLarge
		}
		c.r, c.w = 0, 0
		if err = c.fill(); err != nil {
			if err == io.EOF && h.length < 0 && !h.chunked {
				return body, nil
			}
			return nil, endedEarly(err)
		}
	}
}

// appendChunks appends the data of the chunks that have arrived.
func appendChunks(body []byte, c *conn, k *http1.Chunks) ([]byte, error) {
	for c.r < c.w && !k.Done() {
		data, used, err := k.Next(c.buf[c.r:c.w], bufferSize)
		if err != nil {
			return nil, malformed(err.Error())
		}
		body = append(body, data...)
		c.r += used
	}
	return body, nil
}

// transportOf returns the proxy.transport of a definition.
func transportOf(def *definition.API) definition.Transport {
	if def.Proxy.Transport != nil {
		return *def.Proxy.Transport
	}
	return definition.Transport{}
}

// connections returns the pool of connections to a target by a definition's settings, and
// the identity of what TLS shows and trusts there.
func (s *Pools) connections(def *definition.API, target *match.Target, conf *Config) (*pool, [32]byte, error) {
	id, err := s.files.Compile(def, target, conf.Given())
	if err != nil {
		return nil, id.Sum, err
	}
	own := transportOf(def)
	key := poolKey{
		address: target.Address, identity: id.Sum, tls: target.TLS, plain: conf.PlainIO,
		max: conf.MaxConns, wait: conf.MaxConnWait, waiting: conf.MaxWaiting, idle: conf.IdleTimeout,
		once: !own.Reuses(),
	}
	if own.MaxConns > 0 {
		key.max = own.MaxConns
	}
	return s.get(key, target.Host, id.Config), id.Sum, nil
}
