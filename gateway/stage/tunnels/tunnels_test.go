package tunnels

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// recheck is a Recheck whose result a test sets.
type recheck struct {
	stale  atomic.Bool
	why    atomic.Pointer[error]
	checks atomic.Int64
}

func newRecheck() *recheck {
	p := &recheck{}
	p.stale.Store(true)
	return p
}

func (p *recheck) end(why error) {
	p.why.Store(&why)
	p.stale.Store(true)
}

// Stale implements Recheck.
func (p *recheck) Stale() bool { return p.stale.Load() }

// Check implements Recheck.
func (p *recheck) Check() error {
	p.checks.Add(1)
	p.stale.Store(false)
	if why := p.why.Load(); why != nil {
		return *why
	}
	return nil
}

// begin starts a registry, which ends with the test.
func begin(t *testing.T, interval time.Duration) *Registry {
	r := New(Options{Interval: interval, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// open opens a tunnel that lasts until its client's connection ends.
func open(r *Registry, api string, p Recheck) (ended chan struct{}, other net.Conn) {
	client, other := net.Pipe()
	ended = make(chan struct{})
	over, _ := r.Hold(func(client net.Conn, _ []byte) { _, _ = io.Copy(io.Discard, client) }, About{API: api}, p)
	go func() { over(client, nil); close(ended) }()
	return ended, other
}

func isOpen(ended chan struct{}) bool {
	synctest.Wait()
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

func TestTunnelsThatAreNotAllowedAnyMoreAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, time.Second)
		stays, goes := newRecheck(), newRecheck()
		first, one := open(r, "a", stays)
		second, two := open(r, "a", goes)
		defer one.Close()
		defer two.Close()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := r.Stats(); !isOpen(first) || !isOpen(second) || s.Open["a"] != 2 || s.Cut != 0 {
			t.Fatalf("%+v", s)
		}
		if n := stays.checks.Load(); n != 1 {
			t.Errorf("checked %d times, though nothing changed", n)
		}
		goes.end(errors.New("revoked"))
		time.Sleep(time.Second)
		synctest.Wait() // the look of this very moment is over
		if s := r.Stats(); !isOpen(first) || isOpen(second) || s.Open["a"] != 1 || s.Cut != 1 {
			t.Errorf("%+v", s)
		}
		_ = one.Close()
		if s := r.Stats(); isOpen(first) || len(r.Stats().Open) != 0 || s.Cut != 1 {
			t.Errorf("at the end: %+v", s)
		}
	})
}

func TestWhoWakesIsNotKeptWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, time.Hour)
		p := newRecheck()
		ended, other := open(r, "a", p)
		defer other.Close()
		time.Sleep(30 * time.Minute)
		p.end(errors.New("revoked"))
		r.Wake()
		if isOpen(ended) {
			t.Error("it is still open")
		}
	})
}

func TestWakingOftenCostsFewLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, time.Second)
		p := newRecheck()
		ended, other := open(r, "a", p)
		for range 10_000 {
			p.stale.Store(true)
			r.Wake()
			time.Sleep(100 * time.Microsecond)
		}
		synctest.Wait()
		if n := p.checks.Load(); n > 15 || n < 5 {
			t.Errorf("%d checks in a second", n)
		}
		_ = other.Close()
		if isOpen(ended) {
			t.Error("it is still open")
		}
	})
}

func TestNobodyIsThereAnyMore(t *testing.T) {
	r := New(Options{Log: slog.New(slog.DiscardHandler)})
	called := false
	over, _ := r.Hold(func(client net.Conn, _ []byte) { called = client == nil }, About{}, newRecheck())
	over(nil, nil)
	if !called || len(r.Stats().Open) != 0 {
		t.Errorf("called %v, %+v", called, r.Stats())
	}
}

func TestWithoutAnIntervalTunnelsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, 0)
		p := newRecheck()
		p.end(errors.New("revoked"))
		ended, other := open(r, "a", p)
		time.Sleep(time.Hour)
		if !isOpen(ended) || r.Stats().Open["a"] != 1 {
			t.Errorf("%+v", r.Stats())
		}
		_ = other.Close()
		<-ended
	})
}
