package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	firstBackOff = 100 * time.Millisecond
	lastBackOff  = 5 * time.Second
	steadyAfter  = 30 * time.Second // of running, after which the back-off starts again
	// patience is how long a server that does not respond may go without progress: a line
	// in its log or "starting up". Crash recovery logs every 10 s, so it may take any
	// time.
	patience = time.Minute
)

// SQLSTATE codes of conditions that pass by themselves.
const (
	codeNotNow  = "57P03" // starting up, recovering or shutting down
	codeTooMany = "53300" // all connections are in use
)

// errGone is returned if the process ends before it responds.
var errGone = errors.New("server process ended")

// launch returns a server that responds: an orphan, or else a new process.
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

// explain adds the server's log, which has the reason.
func (s *Server) explain(p *postmaster, err error) error {
	if errors.Is(err, errGone) {
		err = fmt.Errorf("%w (%s)", err, exitText(p.exit))
	}
	return fmt.Errorf("starting PostgreSQL: %w; %s ends with:\n%s", err, s.layout.log, s.layout.logTail(p.logFrom))
}

// awaitReady waits until p responds with our data. It fails with errGone if p ended, and
// if p makes no progress for patience.
func (s *Server) awaitReady(ctx context.Context, p *postmaster) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	sign, logged := time.Now(), s.layout.logSize()
	for {
		err := s.check(ctx)
		if err == nil {
			return nil
		}
		refusal, refused := errors.AsType[*pgconn.PgError](err)
		switch size := s.layout.logSize(); {
		case errors.Is(err, errOtherServer), refused && refusal.Code != codeNotNow && refusal.Code != codeTooMany:
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

// check verifies that the server on the socket responds and serves our data.
func (s *Server) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // nothing depends on it
	rows, err := query(ctx, conn, "show data_directory")
	if err != nil {
		return err
	}
	if len(rows) != 1 || !sameFile(rows[0], s.layout.data) {
		return fmt.Errorf("%w: the server on %s works on %q, not on %s", errOtherServer, s.layout.socket(), rows, s.layout.data)
	}
	return nil
}

// errOtherServer is returned when a server of other data responds on our socket.
var errOtherServer = errors.New("another server")

// connect connects as our role, to the database that every cluster has.
func (s *Server) connect(ctx context.Context) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx, fmt.Sprintf("host='%s' port=%s user=%s dbname=postgres sslmode=disable application_name='sluice supervisor'",
		s.layout.socketDir, port, role))
}

// query runs one statement and returns the first column of each row.
func query(ctx context.Context, conn *pgconn.PgConn, sql string) ([]string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var rows []string
	for _, row := range results[0].Rows {
		rows = append(rows, string(row[0]))
	}
	return rows, nil
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

// revive restarts the server until it succeeds. It returns the back-off for the next
// time, and no server if lifetime ended first.
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
