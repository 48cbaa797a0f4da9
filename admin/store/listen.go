package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/sleep"
)

// pollEvery is the interval of reading the state without an announcement.
const pollEvery = 5 * time.Second

// Listen calls changed with the state at first and after each change, and said with each
// message of AnnounceRefusals, one call at a time, until ctx ends. It has a connection of
// its own, which it replaces when it breaks. Changes in the meantime are not lost, because
// it reads the state itself; messages are.
func (s *Store) Listen(ctx context.Context, changed func(State), said func(message string)) {
	l := listener{store: s, changed: changed, said: said, last: State{Revision: -1}}
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		heard, err := l.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			pause = firstPause
		}
		s.log.Warn("listening for changes of configuration was interrupted", "err", err, "again_in", pause)
		_ = sleep.For(ctx, pause)
	}
}

// Pauses between attempts to connect.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

type listener struct {
	store   *Store
	changed func(State)
	said    func(message string)
	last    State
}

// session listens on one connection until it breaks, and reports whether it ever
// worked.
func (l *listener) session(ctx context.Context) (heard bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, l.store.dialing.Copy())
	if err != nil {
		return false, translate(err)
	}
	defer hangUp(conn)
	// Before the state is read, so that a change between the two is announced.
	if _, err := conn.Exec(ctx, "LISTEN sluice_config; LISTEN "+refusalsChannel); err != nil {
		return false, translate(err)
	}
	queries := db.New(conn)
	for {
		if err := l.read(ctx, queries); err != nil {
			return heard, err
		}
		heard = true
		for {
			n, err := await(ctx, conn)
			if err != nil {
				return heard, err
			}
			if n == nil || n.Channel != refusalsChannel {
				break
			}
			l.said(n.Payload)
		}
	}
}

const refusalsChannel = "sluice_refusals"

// AnnounceRefusals sends a message of less than 8,000 bytes to every admin that listens.
func (s *Store) AnnounceRefusals(ctx context.Context, message string) error {
	return translate(s.queries.AnnounceRefusals(ctx, message))
}

func (l *listener) read(ctx context.Context, q *db.Queries) error {
	state, err := stateOf(ctx, q)
	if err != nil {
		return fmt.Errorf("reading the state of the configuration: %w", err)
	}
	if state != l.last {
		l.last = state
		l.changed(state)
	}
	return nil
}

// await returns an announcement, or nil when it is time to look without one.
func await(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	waiting, cancel := context.WithTimeout(ctx, pollEvery)
	defer cancel()
	n, err := conn.WaitForNotification(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil && !conn.IsClosed() {
		return nil, nil
	}
	return n, translate(err)
}

// hangUp closes a connection that may be broken.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the connection is not used any more
}

// Subscribe calls heard after each announcement on a channel, and whenever some may have
// been missed, one call at a time, until ctx ends. It has a connection of its own, which
// it replaces when it breaks.
func (s *Store) Subscribe(ctx context.Context, channel string, heard func()) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		listening, err := s.subscribe(ctx, channel, heard)
		if ctx.Err() != nil {
			return
		}
		if listening {
			pause = firstPause
		}
		s.log.Warn("listening for announcements was interrupted", "channel", channel, "err", err, "again_in", pause)
		_ = sleep.For(ctx, pause)
	}
}

// subscribe is Subscribe on one connection, until it breaks. It reports whether it ever
// worked.
func (s *Store) subscribe(ctx context.Context, channel string, heard func()) (listening bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, s.dialing.Copy())
	if err != nil {
		return false, translate(err)
	}
	defer hangUp(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return false, translate(err)
	}
	for {
		heard()
		if _, err := await(ctx, conn); err != nil {
			return true, err
		}
	}
}
