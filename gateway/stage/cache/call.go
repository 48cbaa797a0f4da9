package cache

import (
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/cache"
)

// A sharedCall is a single-flight call of the upstream: others with the same cache key wait
// for its response. It implements pipeline.Held.
type sharedCall struct {
	stage *Stage
	rule  *rule
	key   string // the cache key
	base  int    // length of key without the headers of Vary
	owner uint64 // of the stage when the call began
	lines int    // length of the answer's lines that are not the upstream's
	began time.Time

	done chan struct{} // closed when the response is cached or cannot be
	once sync.Once
}

// miss begins a single-flight call, or waits for the one with the same cache key.
func (s *Stage) miss(ex *pipeline.Exchange, key []byte, base int, r *rule) pipeline.Verdict {
	if ex.Call.IsHead() {
		s.cache.misses.Add(1) // its response has no body to cache
		return pipeline.Next
	}
	s.mu.Lock()
	c := s.calls[string(key)]
	if c == nil || time.Since(c.began) > s.cache.opts.Patience { // it may never end
		c = &sharedCall{
			stage: s, rule: r, key: string(key), base: base, owner: s.owner.Load(), lines: len(ex.Answer.Lines),
			began: time.Now(), done: make(chan struct{}),
		}
		s.calls[c.key] = c
		s.mu.Unlock()
		s.cache.misses.Add(1)
		ex.Awaited = c
		// The whole response is requested, whatever the client has; see fill.
		ex.Outgoing.AlsoDrop("If-None-Match")
		ex.Outgoing.AlsoDrop("If-Modified-Since")
		return pipeline.Next
	}
	s.mu.Unlock()
	if c.wait(s.cache.opts.Patience) {
		now := s.cache.now(time.Now())
		var found *answer
		again, _ := s.appendKey(ex.Buf[:0], ex)
		if ex.Buf, found = s.find(ex, again, now); found != nil && !found.never {
			s.cache.shared.Add(1)
			found.serve(ex, now)
			return pipeline.Answered
		}
	}
	s.cache.misses.Add(1)
	return pipeline.Next
}

// wait waits until the call is over. It returns false when that takes too long.
func (c *sharedCall) wait(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
		return false
	}
}

// Release ends the call: those that wait look up its response.
func (c *sharedCall) Release() {
	c.once.Do(func() {
		c.stage.mu.Lock()
		if c.stage.calls[c.key] == c {
			delete(c.stage.calls, c.key)
		}
		c.stage.mu.Unlock()
		close(c.done)
	})
}

// keep caches a response that depends on the request headers in vary, and ends the
// call.
func (c *sharedCall) keep(e *answer, key []byte, vary []string) {
	defer c.Release()
	if c.stage.owner.Load() != c.owner {
		return // it would never be found, and fill the cache until it is evicted
	}
	kept := c.stage.cache.kept
	if len(vary) > 0 {
		kept.Set(cache.TextKey{Owner: c.owner, Text: key[:c.base]}, &answer{vary: vary}, 32*len(vary))
	}
	kept.Set(cache.TextKey{Owner: c.owner, Text: key}, e, cap(e.body)+cap(e.lines)+answerSize)
}

// answerSize is the size of a cached response beside its lines and body, in bytes.
const answerSize = 160

// neverFor is how long a cache key is known to have no cacheable response.
const neverFor = 10 * time.Second

// decline records that the response to this cache key is not cacheable, and ends the
// call.
func (c *sharedCall) decline(now time.Duration) {
	c.stage.cache.kept.Set(cache.TextKey{Owner: c.owner, Text: []byte(c.key)}, &answer{never: true, expires: now + neverFor}, answerSize)
	c.Release()
}
