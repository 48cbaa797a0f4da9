package counter

import "github.com/sluicegate/sluice/internal/cache"

// quotasMost is how many quotas are cached for one store.
const quotasMost = 100_000

// resetFresh is how long the end of a period is trusted, in milliseconds: another
// gateway may have reset the quota, whose next period then ends at another time.
const resetFresh = 1000

// A quotaCache holds what the store last reported about the quotas used most
// recently: a standby counts on from it, a store that lost its data gets it back,
// and the script need not report what it knows.
type quotaCache struct {
	states *cache.Cache[string, quotaState]
}

// A quotaState is the last report about one quota.
type quotaState struct {
	used  int64
	reset int64  // unix milliseconds; 0: never renews
	asked int64  // unix milliseconds when the store reported reset; 0: ask again
	batch uint64 // number of the batch that reported it
}

func newQuotaCache(most int) *quotaCache {
	return &quotaCache{cache.New[string, quotaState](cache.Options{Entries: most})}
}

// reset returns the end of a quota's period in unix milliseconds, 0 for never or
// unknown, and whether the store has to be asked for it.
func (q *quotaCache) reset(key string, now int64) (reset int64, ask bool) {
	s, ok := q.states.Get(key)
	over := s.reset != 0 && s.reset <= now
	return s.reset, !ok || over || uint64(now-s.asked) > resetFresh // a clock set back asks as well
}

// A report is what a batch learned about a quota.
type report struct {
	used    int64 // after the batch's calls
	before  int64 // before them
	reset   int64 // unix milliseconds; 0: never renews
	asked   bool  // reset is from the store now, not from the cache
	batch   uint64
	now     int64 // unix milliseconds
	suspect bool  // the store may have lost its data
}

// record keeps a report. It ignores one of a batch that was sent before the batch
// whose report is kept; and, of a store that may have lost its data, a lower count
// in a period that is still open: the higher one is what the store will get back.
func (q *quotaCache) record(key string, r report) {
	q.states.Update(key, func(s quotaState, _ bool) quotaState {
		lower := r.suspect && r.used < s.used && (s.reset == 0 || s.reset > r.now)
		if r.batch < s.batch || lower {
			return s
		}
		switch {
		case r.asked:
			s.reset, s.asked = r.reset, r.now
		case r.before < s.used:
			s.asked = 0 // the quota was reset: its period is another one
		case s.batch == 0:
			s.reset = r.reset // the entry was evicted meanwhile
		}
		s.used, s.batch = r.used, r.batch
		return s
	})
}

// add counts calls that were added to the store without a report.
func (q *quotaCache) add(key string, calls, reset int64) {
	q.states.Update(key, func(s quotaState, _ bool) quotaState {
		if s.reset != reset {
			s.used, s.reset, s.asked = 0, reset, 0
		}
		s.used += calls
		return s
	})
}

// find returns what is known of a key's open period.
func (q *quotaCache) find(key string, now int64) (used, reset int64, ok bool) {
	s, ok := q.states.Get(key)
	if !ok || s.reset != 0 && s.reset <= now {
		return 0, 0, false
	}
	return s.used, s.reset, true
}

// forget removes a key that was reset.
func (q *quotaCache) forget(key string) { q.states.Delete(key) }

// open returns the quotas that have calls in an open period.
func (q *quotaCache) open(now int64) map[string]quotaState {
	all := make(map[string]quotaState)
	for key, s := range q.states.All {
		if s.used > 0 && (s.reset == 0 || s.reset > now) {
			all[key] = s
		}
	}
	return all
}
