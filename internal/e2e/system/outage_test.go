package system

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// outage returns how long the key store is away: SLUICE_TEST_OUTAGE, such as 10m, or five
// seconds.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SLUICE_TEST_OUTAGE")
	if text == "" {
		return 5 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SLUICE_TEST_OUTAGE: %v", err)
	}
	return d
}

// load calls the gateways of a split with all keys that are in force, and counts.
type load struct {
	s    *split
	path string
	stop chan struct{}
	done sync.WaitGroup

	mu   sync.RWMutex
	keys []string

	calls, failed atomic.Int64
	worst         atomic.Int64 // nanoseconds
}

// add puts a key in force; drop takes the oldest away and returns it.
func (l *load) add(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = append(l.keys, key)
}

func (l *load) drop() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := l.keys[0]
	l.keys = l.keys[1:]
	return key
}

func (l *load) start() {
	for _, g := range l.s.gateways {
		l.done.Go(func() { l.call(g) })
	}
}

// call calls one gateway with the keys in turn until the load ends.
func (l *load) call(g *rig.Server) {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		case <-pace.C:
		}
		// Holding the lock over the call means that no key in use is revoked meanwhile.
		l.mu.RLock()
		began := time.Now()
		got, err := rig.Send("GET", g.Traffic+l.path, nil, "Authorization", l.keys[i%len(l.keys)])
		took := time.Since(began)
		l.mu.RUnlock()
		l.calls.Add(1)
		if err != nil || got.Status != 200 {
			l.failed.Add(1)
			l.s.t.Errorf("%s: %v %s", g.Traffic, err, got)
		}
		if took := took.Nanoseconds(); took > l.worst.Load() {
			l.worst.Store(took)
		}
	}
}

// Callers notice nothing of a key store that is away for long, while keys are made,
// changed and revoked; every revocation is in force when it is answered.
func TestCallsWhileTheKeyStoreIsAway(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 2, testenv.Postgres(t))
	path, _ := s.governed("calm", 1_000_000)
	own := object{"access_rights": rig.AccessTo("calm")}
	l := &load{s: s, path: path, stop: make(chan struct{})}
	for range 20 {
		key := s.rest.NewKey(own)
		s.everywhere("a key", path, key, status(200))
		l.add(key)
	}
	s.listed()
	l.start()
	s.store.Kill()
	for _, one := range append(s.gateways, s.admin) {
		scrape(one, `sluice_store_up{store="keys"} 0`)
	}
	made, changed := &measured{t: t, what: "a key that was made works"}, &measured{t: t, what: "a key that was changed is refused"}
	revoked := 0
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	for end := time.Now().Add(outage(t)); time.Now().Before(end); <-pace.C {
		for range 2 {
			key := s.rest.NewKey(own)
			made.add(s.everywhere("a key made meanwhile", path, key, status(200)))
			l.add(key)
		}
		off := l.drop()
		s.rest.Do("PUT", "/api/keys/"+off, object{"is_inactive": true, "access_rights": rig.AccessTo("calm")})
		changed.add(s.everywhere("a key switched off", path, off, refused("auth_inactive")))
		doomed := l.drop()
		s.revoke(doomed, 2, 2)
		for _, g := range s.gateways {
			s.at(g, path, doomed, refused("auth_unknown"))
		}
		revoked++
	}
	s.store.Restart()
	for _, one := range append(s.gateways, s.admin) {
		scrape(one, `sluice_store_up{store="keys"} 1`)
	}
	close(l.stop)
	l.done.Wait()
	made.report()
	changed.report()
	t.Logf("away for %s: %d calls, %d failed; slowest call %s; %d keys revoked, each refused at once", outage(t),
		l.calls.Load(), l.failed.Load(), time.Duration(l.worst.Load()).Round(time.Millisecond), revoked)
}
