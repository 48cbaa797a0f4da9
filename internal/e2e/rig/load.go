package rig

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Load is traffic in the background. Every answer is checked.
type Load struct {
	t      testing.TB
	ended  chan struct{}
	work   sync.WaitGroup
	done   atomic.Int64
	failed atomic.Int64
	mu     sync.Mutex
	first  []string // failures to show
}

// pace is the pause of a worker between two requests: the load detects
// disturbances, it is not to saturate the machine.
const pace = 3 * time.Millisecond

// StartLoad runs workers that call one repeatedly, each with its own client, until
// Stop. n counts the requests of a worker. An error is a failed request.
func StartLoad(t testing.TB, workers int, one func(client *http.Client, n int) error) *Load {
	l := &Load{t: t, ended: make(chan struct{})}
	for range workers {
		l.work.Go(func() { l.repeat(one) })
	}
	t.Cleanup(func() { l.end() })
	return l
}

func (l *Load) repeat(one func(*http.Client, int) error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: Patience}
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

func (l *Load) fail(err error) {
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.first) < 5 {
		l.first = append(l.first, fmt.Sprintf("%s: %v", time.Now().UTC().Format("15:04:05.000"), err))
	}
}

// AwaitMore waits for n more answers.
func (l *Load) AwaitMore(n int64) {
	l.t.Helper()
	until := l.done.Load() + n
	Eventually(l.t, fmt.Sprintf("%d further requests of the load", n), func() error {
		if now := l.done.Load(); now < until {
			return fmt.Errorf("%d are missing", until-now)
		}
		return nil
	})
}

func (l *Load) end() {
	select {
	case <-l.ended:
	default:
		close(l.ended)
	}
	l.work.Wait()
}

// Stop ends the load and returns the number of requests. A failed request fails the
// test.
func (l *Load) Stop() int64 {
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

// Want returns an error unless the answer has the status.
func Want(status int, got Answer, err error) error {
	if err == nil && got.Status != status {
		err = fmt.Errorf("%s, want %d", got, status)
	}
	return err
}
