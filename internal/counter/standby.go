package counter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Policy is what a gateway does with calls while the store is away.
type Policy uint8

const (
	Local  Policy = iota // Local counts in this process, from what the store reported last, in this gateway's share.
	Open                 // Open admits them uncounted.
	Closed               // Closed refuses them with ErrUnavailable.
)

var policyNames = [...]string{Local: "local", Open: "open", Closed: "closed"}

// ParsePolicy reads "local", "open" or "closed".
func ParsePolicy(s string) (Policy, error) {
	if p := slices.Index(policyNames[:], s); p >= 0 {
		return Policy(p), nil
	}
	return Local, fmt.Errorf("outage policy %q: want local, open or closed", s)
}

// String is the policy's name in configuration.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// debtsMost is how many keys may have calls that the store does not have yet.
const debtsMost = 1_000_000

// A standby counts for a lane while the store is away. It admits this gateway's
// share of what was free in the store's last report, and keeps the admitted calls
// of quotas as debts, which are added to the store afterwards.
type standby struct {
	policy   Policy
	gateways func() int
	quotas   *quotaCache
	stats    *Stats

	mu     sync.Mutex
	memory *Memory
	debts  map[string]debt
}

// A debt is the calls of a quota that the store does not have yet.
type debt struct {
	calls  int64
	reset  int64 // unix milliseconds when its period ends; 0 never
	opened bool  // the period was opened here: the store's may end at another time
}

func newStandby(o *ValkeyOptions, q *quotaCache, stats *Stats) *standby {
	return &standby{
		policy: o.Outage, gateways: o.Gateways, quotas: q, stats: stats,
		memory: NewMemory(nil), debts: make(map[string]debt),
	}
}

// count decides calls, or with calls 0 peeks, that the store did not answer. Calls
// that the store may have counted are no debt.
func (s *standby) count(limits []Limit, counts []Count, calls int32, o *outage) (int, error) {
	s.stats.Standby.Add(int64(calls))
	switch s.policy {
	case Closed:
		return 0, o
	case Open:
		for i := range limits {
			counts[i] = Count{Remaining: max(limits[i].Max, 0)}
		}
		return -1, nil
	}
	var shares [MaxLimits]Limit
	s.mu.Lock()
	defer s.mu.Unlock()
	opened := s.share(time.Now().UnixMilli(), limits, shares[:])
	refused, err := s.memory.count(shares[:len(limits)], nil, counts, int64(calls))
	if calls > 0 && refused < 0 && err == nil && !o.unknown {
		for i := range limits {
			if limits[i].Kind == Quota {
				s.addDebt(limits[i].Key, int64(calls), counts[i].ResetAt, opened&(1<<i) != 0)
			}
		}
	}
	return refused, err
}

// share sets shares to this gateway's part of the limits: of a quota whose period
// the store opened, a part of what was free, until that period ends; else a part of
// the whole. Parts are rounded up. Bit i of the result is set if the period of limit
// i is not the store's.
func (s *standby) share(now int64, limits, shares []Limit) (opened uint32) {
	among := int64(1)
	if s.gateways != nil {
		among = int64(max(s.gateways(), 1))
	}
	for i := range limits {
		l := limits[i]
		if l.Kind == Rate {
			l.Max = ceil(l.Max, among)
		} else if used, reset, ok := s.quotas.find(l.Key, now); ok {
			s.memory.begin(l.Key, reset*1000)
			l.Max = ceil(l.Max-used, among)
			if reset == 0 {
				l.Period = 0 // a changed Period applies from the store's next period on
			}
		} else {
			l.Max = ceil(l.Max, among)
			opened |= 1 << i
		}
		shares[i] = l
	}
	return opened
}

func ceil(n, parts int64) int64 {
	if n <= 0 {
		return 0
	}
	return (n + parts - 1) / parts
}

// addDebt adds calls to a key's debt. A debt of another period is dropped.
func (s *standby) addDebt(key string, calls, reset int64, opened bool) {
	d, ok := s.debts[key]
	if !ok && len(s.debts) >= debtsMost {
		s.stats.DebtsDropped.Add(1)
		return
	}
	if d.reset != reset {
		d = debt{}
	}
	s.debts[key] = debt{calls: d.calls + calls, reset: reset, opened: opened}
}

// refund takes back calls that count admitted and a later part refused.
func (s *standby) refund(limits []Limit, calls int64) {
	if s.policy != Local {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range limits {
		if limits[i].Kind != Quota {
			continue
		}
		s.memory.uncount(limits[i].Key, calls)
		if d, ok := s.debts[limits[i].Key]; ok && d.calls > 0 {
			d.calls = max(d.calls-calls, 0)
			s.debts[limits[i].Key] = d
		}
	}
}

// forget removes a key that was reset.
func (s *standby) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.debts, key)
	_ = s.memory.Reset(context.Background(), key) // never fails
}

func (s *standby) hasDebts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.debts) > 0
}

// takeDebts removes and returns all debts.
func (s *standby) takeDebts() map[string]debt {
	s.mu.Lock()
	defer s.mu.Unlock()
	debts := s.debts
	if len(debts) > 0 {
		s.debts = make(map[string]debt)
	}
	return debts
}

// clear forgets what was counted here, once the store has it.
func (s *standby) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory.Len() > 0 {
		s.memory = NewMemory(nil)
	}
}
