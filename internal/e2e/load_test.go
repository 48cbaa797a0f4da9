package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load is traffic in the background, every answer of which is checked.
type load struct {
	t      testing.TB
	ended  chan struct{}
	work   sync.WaitGroup
	done   atomic.Int64
	failed atomic.Int64
	mu     sync.Mutex
	first  []string // failures to show
}

// pace is the pause of a worker between two requests: the load is there to be
// disturbed, not to keep the machine busy.
const pace = 3 * time.Millisecond

// startLoad has workers repeat one, each with a client of its own, until stop.
// n counts the requests of a worker. An error is a request that failed.
func startLoad(t testing.TB, workers int, one func(client *http.Client, n int) error) *load {
	l := &load{t: t, ended: make(chan struct{})}
	for range workers {
		l.work.Go(func() { l.repeat(one) })
	}
	t.Cleanup(func() { l.end() })
	return l
}

func (l *load) repeat(one func(*http.Client, int) error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-l.ended:
			return
		case <-tick.C:
		}
		if err := one(client, n); err != nil {
			l.fail(err)
		}
		l.done.Add(1)
	}
}

func (l *load) fail(err error) {
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.first) < 5 {
		l.first = append(l.first, fmt.Sprintf("%s: %v", time.Now().UTC().Format("15:04:05.000"), err))
	}
}

// awaitMore waits until further n requests were answered.
func (l *load) awaitMore(n int64) {
	l.t.Helper()
	until := l.done.Load() + n
	eventually(l.t, fmt.Sprintf("%d further requests of the load", n), func() error {
		if now := l.done.Load(); now < until {
			return fmt.Errorf("%d are missing", until-now)
		}
		return nil
	})
}

func (l *load) end() {
	select {
	case <-l.ended:
	default:
		close(l.ended)
	}
	l.work.Wait()
}

// stop ends the load and returns how many requests there were. Each that failed
// fails the test.
func (l *load) stop() int64 {
	l.t.Helper()
	l.end()
	if failed := l.failed.Load(); failed > 0 {
		l.t.Errorf("%d of %d requests failed; the first ones:", failed, l.done.Load())
		for _, text := range l.first {
			l.t.Errorf("  %s", text)
		}
	}
	return l.done.Load()
}

// want returns an error unless the answer has the status.
func want(status int, got answer, err error) error {
	if err == nil && got.status != status {
		err = fmt.Errorf("%s, want %d", got, status)
	}
	return err
}
