package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	firstBackOff = 100 * time.Millisecond
	lastBackOff  = 5 * time.Second
	steadyAfter  = 30 * time.Second // of service, after which an end counts as the first again
	// patience is how long a server that does not answer may go without a sign of
	// life: a line in its log or a "starting up". Recovery gives one every 10 s, so
	// that however long it takes is waited for.
	patience = time.Minute
)

// errGone says that the process ended while it was waited for.
var errGone = errors.New("server process ended")

// launch returns a server that answers: an orphan, or else a new process.
func (s *Server) launch(ctx context.Context) (*postmaster, error) {
	p, err := s.orphan()
	if err != nil {
		return nil, err
	}
	if p != nil {
		err := s.awaitReady(ctx, p)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, errGone) {
			p.release()
			return nil, fmt.Errorf("taking over the server of an earlier run (process %d): %w", p.process.Pid, err)
		}
	}
	if err := s.clearStale(ctx); err != nil {
		return nil, err
	}
	if err := s.configure(); err != nil {
		return nil, err
	}
	if p, err = s.spawn(); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx, p); err != nil {
		return nil, errors.Join(s.explain(p, err), p.stop())
	}
	return p, nil
}

// explain adds what the server logged: its reason is there and nowhere else.
func (s *Server) explain(p *postmaster, err error) error {
	if errors.Is(err, errGone) {
		err = fmt.Errorf("%w (%s)", err, exitText(p.exit))
	}
	return fmt.Errorf("starting PostgreSQL: %w; %s ends with:\n%s", err, s.layout.log, s.layout.logTail(p.logFrom))
}

// awaitReady waits until p answers for our data. It fails with errGone when p
// ended, and when p shows no sign of life for as long as patience.
func (s *Server) awaitReady(ctx context.Context, p *postmaster) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	sign, logged := time.Now(), s.layout.logSize()
	for {
		err := s.check(ctx)
		if err == nil {
			return nil
		}
		refusal, refused := errors.AsType[*serverError](err)
		switch size := s.layout.logSize(); {
		case refused && refusal.Code != codeNotNow && refusal.Code != codeTooMany:
			return err
		case refused, size != logged:
			sign, logged = time.Now(), size
		case time.Since(sign) > patience:
			return fmt.Errorf("no answer and no progress in its log for %v: %w", patience, err)
		}
		select {
		case <-p.gone:
			return errGone
		case <-ctx.Done():
			return fmt.Errorf("waiting for the server: %w (%w)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// check asks who answers on our socket, and for which data.
func (s *Server) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	l, err := dial(ctx, s.layout.socket(), "postgres")
	if err != nil {
		return err
	}
	defer l.close()
	rows, err := l.query("show data_directory")
	if err != nil {
		return err
	}
	if len(rows) != 1 || !sameFile(rows[0], s.layout.data) {
		return &serverError{Code: "XX000", Message: fmt.Sprintf("the server on %s works on %q, not on %s", s.layout.socket(), rows, s.layout.data)}
	}
	return nil
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// supervise keeps a server running until lifetime ends, and stops it then.
func (s *Server) supervise(lifetime context.Context, p *postmaster) {
	defer close(s.done)
	defer s.layout.leave()
	backOff := firstBackOff
	for p != nil {
		began := time.Now()
		select {
		case <-lifetime.Done():
			s.ready.Store(false)
			s.stopping = errors.Join(p.stop(), s.lock.Close())
			return
		case <-p.gone:
		}
		s.ready.Store(false)
		if time.Since(began) > steadyAfter {
			backOff = firstBackOff
		}
		s.log.Warn("database ended by itself; starting it again", "pid", p.process.Pid,
			"exit", exitText(p.exit), "log", s.layout.logTail(p.logFrom))
		p, backOff = s.revive(lifetime, backOff)
	}
	s.stopping = s.lock.Close()
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0 or not known"
	}
	return err.Error()
}

// revive starts the server again, however often it takes. It returns the
// back-off for the next time, and no server when lifetime ended first.
func (s *Server) revive(lifetime context.Context, backOff time.Duration) (*postmaster, time.Duration) {
	for {
		select {
		case <-lifetime.Done():
			return nil, 0
		case <-time.After(backOff):
		}
		backOff = min(2*backOff, lastBackOff)
		began := time.Now()
		p, err := s.launch(lifetime)
		if err == nil {
			s.ready.Store(true)
			s.log.Info("database is back", "pid", p.process.Pid, "took", time.Since(began))
			return p, backOff
		}
		if lifetime.Err() == nil {
			s.log.Warn("database not started; trying again", "err", err, "in", backOff)
		}
	}
}
