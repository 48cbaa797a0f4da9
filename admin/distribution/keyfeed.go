package distribution

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/sleep"
)

// Bounds of the changes of keys.
const (
	maxRecent    = 20_000 // changes in memory; gateways that are further behind are answered from the database
	maxChanges   = 10_000 // in one answer
	dropChanges  = time.Hour
	readKeysWait = 100 * time.Millisecond // first wait after a failed read, doubled up to twenty times that
)

// A keyFeed holds the last changes of keys, for gateways that wait for the next.
type keyFeed struct {
	mu      sync.Mutex
	base    store.KeyPosition   // before the first of recent; zero: nothing was read yet
	recent  []store.ChangedKey  // in their order
	changed chan struct{}       // closed when there are more
	applied map[string]heardKey // by gateway
	pending map[string]int64    // of applied, what the database does not have yet
}

// heardKey is the last change that a gateway has applied.
type heardKey struct {
	seq int64
	at  time.Time
}

func newKeyFeed() *keyFeed {
	return &keyFeed{changed: make(chan struct{}), applied: make(map[string]heardKey), pending: make(map[string]int64)}
}

// last returns the position of the last change. The caller holds mu.
func (f *keyFeed) last() store.KeyPosition {
	if n := len(f.recent); n > 0 {
		return f.recent[n-1].KeyPosition
	}
	return f.base
}

// add adds changes and ends all waits.
func (f *keyFeed) add(changes []store.ChangedKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent = append(f.recent, changes...)
	if over := len(f.recent) - maxRecent; over > 0 {
		over = max(over, maxRecent/4) // not for each change
		over = min(over, len(f.recent))
		f.base = f.recent[over-1].KeyPosition
		f.recent = slices.Clone(f.recent[over:])
	}
	f.wake()
}

// restart begins at a position of another database, or of another state of it. What
// gateways have applied before says nothing about it.
func (f *keyFeed) restart(at store.KeyPosition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.base, f.recent = at, nil
	clear(f.applied)
	clear(f.pending)
	f.wake()
}

func (f *keyFeed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// after returns the changes after a position, if they are in memory, and otherwise a
// channel that is closed when there are more, and the last position.
func (f *keyFeed) after(have store.KeyPosition) (changes []store.ChangedKey, known bool, last store.KeyPosition, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, more = f.last(), f.changed
	if have == f.base && have != (store.KeyPosition{}) {
		return f.recent, true, last, more
	}
	at, found := slices.BinarySearchFunc(f.recent, have.Seq, func(c store.ChangedKey, seq int64) int { return int(c.Seq - seq) })
	if !found || f.recent[at].Nonce != have.Nonce {
		return nil, false, last, more
	}
	return f.recent[at+1:], true, last, more
}

// heard records that a gateway has applied all changes up to one.
func (f *keyFeed) heard(gateway string, seq int64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.applied[gateway].seq != seq && len(f.pending) < maxStatuses {
		f.pending[gateway] = seq
	}
	if _, known := f.applied[gateway]; !known && len(f.applied) >= maxStatuses {
		clear(f.applied)
	}
	f.applied[gateway] = heardKey{seq, now}
}

// take removes and returns what the database does not have yet.
func (f *keyFeed) take() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.pending
	f.pending = make(map[string]int64)
	return taken
}

// has reports whether a gateway has applied a change, as far as this process knows.
func (f *keyFeed) has(gateway string, seq int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.applied[gateway].seq >= seq
}

// KeyChanges waits for changes of keys after a position, and returns them. When ctx
// ends, and after Release, it returns none. A gateway that names itself says that it has
// applied all changes up to the position. The error wraps store.ErrUnavailable while no
// change could be read from the database.
func (s *Service) KeyChanges(ctx context.Context, gateway string, have store.KeyPosition) (*definition.KeyChanges, error) {
	for {
		changes, known, last, more := s.keyFeed.after(have)
		if known && gateway != "" {
			s.keyFeed.heard(gateway, have.Seq, time.Now())
		}
		switch {
		case last == (store.KeyPosition{}):
			if ctx.Err() != nil || s.latestBundle.isClosed() {
				return nil, store.ErrUnavailable
			}
		case !known:
			return s.olderChanges(ctx, have, last)
		case len(changes) > 0:
			return answerOf(changes), nil
		case ctx.Err() != nil || s.latestBundle.isClosed():
			return &definition.KeyChanges{Position: have.String(), Changed: []string{}}, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
		case <-s.released:
		}
	}
}

// olderChanges answers a gateway whose position is not in memory.
func (s *Service) olderChanges(ctx context.Context, have, last store.KeyPosition) (*definition.KeyChanges, error) {
	reset := &definition.KeyChanges{Position: last.String(), Changed: []string{}, Reset: true}
	if have == (store.KeyPosition{}) {
		return reset, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workWithin)
	defer cancel()
	changes, err := s.deps.Store.KeyChangesAfter(ctx, have, maxChanges)
	switch {
	case errors.Is(err, store.ErrUnknownPosition):
		return reset, nil
	case err != nil:
		return nil, err
	case len(changes) == 0: // this process has not read as far as the database
		return &definition.KeyChanges{Position: have.String(), Changed: []string{}}, nil
	}
	return answerOf(changes), nil
}

func answerOf(changes []store.ChangedKey) *definition.KeyChanges {
	changes = changes[:min(len(changes), maxChanges)]
	answer := &definition.KeyChanges{Position: changes[len(changes)-1].String(), Changed: make([]string, 0, len(changes))}
	for _, c := range changes {
		if c.Hash != "" {
			answer.Changed = append(answer.Changed, c.Hash)
		}
	}
	return answer
}

// followKeys reads changes of keys whenever there may be some.
func (s *Service) followKeys() {
	for {
		select {
		case <-s.lifetime.Done():
			return
		case <-s.dirtyKeys:
		}
		for wait := readKeysWait; ; wait = min(2*wait, 20*readKeysWait) {
			err := s.readKeyChanges()
			if err == nil {
				break
			}
			if s.lifetime.Err() == nil {
				s.log.Warn("changes of keys reach the gateways later", "err", err)
			}
			if sleep.For(s.lifetime, wait) != nil {
				return
			}
		}
	}
}

// readKeyChanges reads the changes since the last read. If the database does not know
// the last change any more, it was restored: then gateways look at every key again, and
// the key store is compared with the database.
func (s *Service) readKeyChanges() error {
	ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
	defer cancel()
	s.keyFeed.mu.Lock()
	last := s.keyFeed.last()
	s.keyFeed.mu.Unlock()
	for last != (store.KeyPosition{}) {
		changes, err := s.deps.Store.KeyChangesAfter(ctx, last, maxChanges)
		if errors.Is(err, store.ErrUnknownPosition) {
			s.log.Warn("the database was restored: gateways look at every key again")
			break
		}
		if err != nil || len(changes) == 0 {
			return err
		}
		s.keyFeed.add(changes)
		if len(changes) < maxChanges {
			return nil
		}
		last = changes[len(changes)-1].KeyPosition
	}
	at, err := s.deps.Store.LastKeyChange(ctx)
	if err != nil {
		return err
	}
	s.keyFeed.restart(at)
	return nil
}

// dropKeyChanges deletes old changes of keys from the database.
func (s *Service) dropKeyChanges() {
	for sleep.For(s.lifetime, dropChanges) == nil {
		ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
		if err := s.deps.Store.DropKeyChanges(ctx); err != nil && s.lifetime.Err() == nil {
			s.log.Warn("old changes of keys were not deleted", "err", err)
		}
		cancel()
	}
}

// putHeard writes to the database what gateways have applied.
func (s *Service) putHeard() {
	for name, seq := range s.keyFeed.take() {
		ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
		err := s.deps.Store.PutGatewayKeys(ctx, name, seq)
		cancel()
		if err != nil && s.lifetime.Err() == nil {
			s.log.Warn("what a gateway has applied was not recorded", "gateway", name, "err", err)
		}
	}
}

// Reach says in how many gateways a change is in force.
type Reach struct {
	// Gateways in which the change is in force.
	InForce int `json:"in_force"`
	// Gateways that reported lately.
	Gateways int `json:"gateways"`
	// The others, by name.
	Missing []string `json:"missing"`
}

// How long a change of a key is waited for.
const (
	reachWithin = time.Second
	reachEvery  = 50 * time.Millisecond
)

// Reached waits, up to a second, until all changes of keys that were made so far are in
// force in every gateway that reported lately.
func (s *Service) Reached(ctx context.Context) (*Reach, error) {
	last, err := s.deps.Store.LastKeyChange(ctx)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(reachWithin); ; {
		list, err := s.deps.Store.ListGateways(ctx)
		if err != nil {
			return nil, err
		}
		r := s.reachOf(list, last.Seq)
		if len(r.Missing) == 0 || time.Now().After(end) || sleep.For(ctx, reachEvery) != nil {
			return r, nil
		}
	}
}

// reachOf tells gateways that have applied a change from those that have not, as far as
// this process or the database knows.
func (s *Service) reachOf(list []store.Gateway, seq int64) *Reach {
	r := &Reach{Missing: []string{}}
	for _, g := range list {
		if time.Since(g.SeenAt) >= aliveFor {
			continue
		}
		r.Gateways++
		if g.KeysSeq >= seq || s.keyFeed.has(g.Name, seq) {
			r.InForce++
		} else {
			r.Missing = append(r.Missing, g.Name)
		}
	}
	return r
}
