package cache

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/cache"
)

// An answer is a cached response.
type answer struct {
	vary  []string // not nil: the headers of Vary, which are part of the full cache key; all else is empty
	never bool     // the response was not cacheable: calls need not wait for each other

	status   int
	lines    []byte // header lines, as the upstream sent them
	body     []byte
	etag     []byte // in lines; nil without one
	modified []byte // likewise

	expires time.Duration // on the cache's clock
	born    time.Duration // likewise; its Age is subtracted
}

// Handle implements pipeline.Stage.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	r := s.ruleFor(ex)
	if r == nil || ex.DryRunAt() != nil { // the cache of other moments is unknown
		return pipeline.Next
	}
	key, alike := s.appendKey(ex.Buf[:0], ex)
	if !alike {
		ex.Buf = key
		return pipeline.Next
	}
	base, now := len(key), s.cache.now(ex.Started)
	key, found := s.find(ex, key, now)
	ex.Buf = key
	switch {
	case found != nil && found.never:
		if !ex.IsDry() {
			s.cache.misses.Add(1)
		}
		return pipeline.Next
	case found != nil && ex.IsDry():
		found.serve(ex, now)
		return pipeline.Answered
	case found != nil:
		s.cache.hits.Add(1)
		found.serve(ex, now)
		return pipeline.Answered
	case ex.IsDry():
		return pipeline.Next
	}
	return s.miss(ex, key, base, r)
}

// ruleFor returns how the response to a request is cached, or nil when it is neither
// cached nor answered from the cache.
func (s *Stage) ruleFor(ex *pipeline.Exchange) *rule {
	call, out := ex.Call, &ex.Outgoing
	if m := call.Method; string(m) != "GET" && string(m) != "HEAD" || call.HasBody() || out.HasBody || out.Post || out.Root {
		return nil
	}
	if s.own && ex.KeyHash == "" {
		return nil // the caller is unknown
	}
	if call.Find(wire.NameConnection) != nil && !goesUp(call) {
		return nil
	}
	if call.Find(wire.NameUpgrade) != nil || call.Header("Range") != nil ||
		bytes.Contains(call.Get(wire.NameAccept), eventStream) || holds(call.Header("Cache-Control"), "no-store") {
		return nil
	}
	if s.rules != nil {
		if r, ok := s.rules.Find(call.Method, ex.Path, ex.PathBuf); ok {
			return r
		}
	}
	if s.opts.AllSafe {
		return &s.usual
	}
	return nil
}

var eventStream = []byte("text/event-stream")

// appendKey appends the cache key, without the headers of Vary. Each part but the last
// ends with a byte that no part contains. It returns false when the request goes on to
// an API without a fingerprint, whose response may depend on more than the key.
func (s *Stage) appendKey(dst []byte, ex *pipeline.Exchange) ([]byte, bool) {
	call, out := ex.Call, &ex.Outgoing
	dst = append(dst, call.Host...)
	dst = append(dst, '\n')
	dst = append(dst, call.Path...)
	if out.HasPath {
		dst = append(append(dst, ' '), out.Path...)
	}
	if out.Alternate > 0 {
		dst = append(dst, ' ', byte(out.Alternate>>8), byte(out.Alternate))
	}
	dst = append(dst, '?')
	dst = append(dst, ex.Query()...)
	dst = append(dst, '\n')
	if s.own {
		dst = append(dst, ex.KeyHash...)
	}
	dst = append(dst, '\n')
	dst = s.appendSent(dst, ex)
	if len(out.Extra) > 0 { // what the gateway adds for the upstream
		dst = s.appendSum(dst, 'x', out.Extra)
	}
	for _, name := range s.byHeaders {
		dst = appendHeader(append(dst, '\n'), ex.Call, name)
	}
	if next := s.next(ex); next != nil {
		return ex.Internal.AppendFingerprints(append(dst, '\n'), ex, next)
	}
	return dst, true
}

// appendSum appends a digest of a value: two keyed 64-bit hashes, so that collisions
// cannot be constructed.
func (s *Stage) appendSum(dst []byte, kind byte, value []byte) []byte {
	dst = append(dst, kind)
	for _, seed := range s.cache.seeds {
		dst = binary.LittleEndian.AppendUint64(dst, maphash.Bytes(seed, value))
	}
	return dst
}

// appendHeader appends the values of all lines of a header, whose name has the form of
// normal. A line whose name has _ in place of - is told apart, as some upstreams do.
func appendHeader(dst []byte, call *wire.Call, name string) []byte {
	for i := range call.Fields {
		f := &call.Fields[i]
		written := call.NameOf(f)
		if !is(written, name) {
			continue
		}
		dst = append(dst, call.ValueOf(f)...)
		dst = append(dst, '\r')
		if bytes.IndexByte(written, '_') >= 0 {
			dst = append(append(dst, written...), '\r')
		}
	}
	return dst
}

// find returns the cached response for a key, nil if there is none that is fresh, and
// the key with the headers of Vary.
func (s *Stage) find(ex *pipeline.Exchange, key []byte, now time.Duration) ([]byte, *answer) {
	owner := s.owner.Load()
	found := s.cache.kept.Get(cache.TextKey{Owner: owner, Text: key})
	if found != nil && found.vary != nil {
		key = appendVary(key, ex.Call, found.vary)
		found = s.cache.kept.Get(cache.TextKey{Owner: owner, Text: key})
	}
	if found == nil || found.vary != nil || now >= found.expires {
		return key, nil
	}
	return key, found
}

// appendVary appends the values of request headers to a key.
func appendVary(key []byte, call *wire.Call, names []string) []byte {
	for _, name := range names {
		key = appendHeader(append(append(append(key, '\n'), name...), ':'), call, name)
	}
	return key
}

// serve writes the cached response.
func (e *answer) serve(ex *pipeline.Exchange, now time.Duration) {
	a := ex.Answer
	a.Lines = append(a.Lines, e.lines...)
	a.Lines = append(a.Lines, "Age: "...)
	a.Lines = strconv.AppendInt(a.Lines, max(0, int64((now-e.born)/time.Second)), 10)
	a.Lines = append(a.Lines, "\r\nX-Cache: hit\r\n"...)
	a.Status, a.Body, ex.Upstream.Cached = e.status, e.body, true
	switch {
	case e.status == 204:
		a.NoBody, a.Length = true, -1
	case e.status == 200 && isCurrent(ex.Call, e.etag, e.modified):
		notModified(a)
	case ex.Call.IsHead():
		a.NoBody, a.Length = true, int64(len(e.body))
	}
}

// notModified turns an answer into a 304.
func notModified(a *wire.Answer) {
	a.Status, a.Phrase, a.Body, a.NoBody, a.Length = 304, nil, nil, true, -1
}

// isCurrent reports whether the client of a conditional request has the current
// response (RFC 9110, section 13.1).
func isCurrent(call *wire.Call, etag, modified []byte) bool {
	if asked := call.Header("If-None-Match"); asked != nil {
		return etag != nil && (string(asked) == "*" || listsTag(asked, etag))
	}
	asked := call.Header("If-Modified-Since")
	return asked != nil && modified != nil && bytes.Equal(asked, modified)
}

// listsTag reports whether a list of entity tags contains one, by weak comparison.
func listsTag(list, tag []byte) bool {
	tag = bytes.TrimPrefix(tag, []byte("W/"))
	for len(list) > 0 {
		var one []byte
		one, list, _ = bytes.Cut(list, []byte(","))
		if bytes.Equal(bytes.TrimPrefix(bytes.Trim(one, " \t"), []byte("W/")), tag) {
			return true
		}
	}
	return false
}

// Explain implements pipeline.Explainer.
func (s *Stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	r := s.ruleFor(ex)
	if r == nil {
		f.Said = "the answer to such a call is not kept"
		return
	}
	where := "cache_options.cache_all_safe_requests"
	if r.path != "" {
		where = "extended_paths " + r.path
	}
	if ex.DryRunAt() != nil {
		f.Said, f.Untold = "whether an answer is kept is known of this moment only", true
		return
	}
	key, alike := s.appendKey(nil, ex)
	if !alike {
		f.Said = "the answer is not kept: the API that the call goes on to asks who calls, or answers by more than is told here"
		return
	}
	seen := "not kept at present"
	if _, found := s.find(ex, key, s.cache.now(ex.Started)); found != nil && !found.never {
		seen = "kept"
	}
	f.Fact(where, r.lifetime.String(), seen, "definition")
}
