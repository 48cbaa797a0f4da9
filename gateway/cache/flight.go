package cache

import (
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/graphql/cache"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// A flight is one call that goes up for an answer that others may be waiting for.
// It implements pipeline.Held.
type flight struct {
	stage *Stage
	rule  *rule
	key   string // that was looked for
	base  int    // bytes of it that do not come from headers that answers depend on
	owner uint64 // of what is kept, when the call began
	lines int    // bytes of the answer's lines that are not the upstream's
	began time.Time

	over chan struct{} // closed once it is known what became of it
	once sync.Once
}

// miss lets one call go up, and has others wait for it that ask the same.
func (s *Stage) miss(ex *pipeline.Exchange, key []byte, base int, r *rule) pipeline.Verdict {
	if ex.Call.IsHead() {
		s.cache.misses.Add(1) // it brings no body that could be kept
		return pipeline.Next
	}
	s.mu.Lock()
	f := s.flights[string(key)]
	if f == nil || time.Since(f.began) > s.cache.opts.Patience { // of one that takes so long nobody knows how it ends
		f = &flight{
			stage: s, rule: r, key: string(key), base: base, owner: s.owner.Load(), lines: len(ex.Answer.Lines),
			began: time.Now(), over: make(chan struct{}),
		}
		s.flights[f.key] = f
		s.mu.Unlock()
		s.cache.misses.Add(1)
		ex.Awaited = f
		// The whole answer is asked for, whatever the client has; see Fill.
		ex.Outgoing.AlsoDrop("If-None-Match")
		ex.Outgoing.AlsoDrop("If-Modified-Since")
		return pipeline.Next
	}
	s.mu.Unlock()
	if f.wait(s.cache.opts.Patience) {
		now := s.cache.now(time.Now())
		var found *answer
		again, _ := s.appendKey(ex.Buf[:0], ex)
		if ex.Buf, found = s.look(ex, again, now); found != nil && !found.never {
			s.cache.shared.Add(1)
			found.serve(ex, now)
			return pipeline.Answered
		}
	}
	s.cache.misses.Add(1)
	return pipeline.Next
}

// wait waits until the flight is over, and tells whether it is.
func (f *flight) wait(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-f.over:
		return true
	case <-timer.C:
		return false
	}
}

// Release ends the flight: those who wait look what there is.
func (f *flight) Release() {
	f.once.Do(func() {
		f.stage.mu.Lock()
		if f.stage.flights[f.key] == f {
			delete(f.stage.flights, f.key)
		}
		f.stage.mu.Unlock()
		close(f.over)
	})
}

// keep keeps an answer that depends on the headers of call that vary names, and
// ends the flight.
func (f *flight) keep(e *answer, key []byte, vary []string) {
	defer f.Release()
	if f.stage.owner.Load() != f.owner {
		return // nobody would be told, and it would stay until there is no room for it
	}
	kept := f.stage.cache.kept
	if len(vary) > 0 {
		kept.Set(cache.Key{Owner: f.owner, Text: key[:f.base]}, &answer{vary: vary}, 32*len(vary))
	}
	kept.Set(cache.Key{Owner: f.owner, Text: key}, e, cap(e.body)+cap(e.lines)+answerSize)
}

// answerSize is what an answer takes beside its lines and body, in bytes.
const answerSize = 160

// neverFor is how long it is remembered that answers cannot be kept.
const neverFor = 10 * time.Second

// decline remembers that such answers cannot be kept, and ends the flight.
func (f *flight) decline(now time.Duration) {
	f.stage.cache.kept.Set(cache.Key{Owner: f.owner, Text: []byte(f.key)}, &answer{never: true, expires: now + neverFor}, answerSize)
	f.Release()
}
