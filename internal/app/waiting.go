package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/sleep"
)

// How often an admin looks for its database at the start, and how often it logs that it
// still waits.
const (
	lookForDatabase = 500 * time.Millisecond
	sayWaiting      = 30 * time.Second
)

// databaseWait is the wait of an admin for its database at the start.
type databaseWait struct {
	url    secret.Value
	ln     net.Listener            // of the admin; it stays open
	scrape fasthttp.RequestHandler // of GET /metrics; nil: there is none
	log    *slog.Logger
}

// until returns once the database answers. Meanwhile it answers calls of the admin with
// what is missing. An error that waiting does not mend is returned at once.
func (w *databaseWait) until(ctx context.Context) error {
	err := w.reach(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !errors.Is(err, store.ErrUnavailable) {
		return err
	}
	w.log.Warn("the database does not answer; the admin waits for it", "err", err)
	stop := w.serve()
	defer stop()
	began, said := time.Now(), time.Now()
	for {
		if sleep.For(ctx, lookForDatabase) != nil {
			return context.Cause(ctx)
		}
		err := w.reach(ctx)
		switch {
		case err == nil:
			w.log.Info("the database answers", "waited", time.Since(began).Round(time.Second))
			return nil
		case !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil:
			return err
		case time.Since(said) >= sayWaiting:
			said = time.Now()
			w.log.Warn("the admin still waits for the database", "err", err)
		}
	}
}

func (w *databaseWait) reach(ctx context.Context) error {
	if err := store.Reach(ctx, w.url.Reveal()); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	return nil
}

// serve answers calls until stop is called.
func (w *databaseWait) serve() (stop func()) {
	server := &fasthttp.Server{
		Handler: admin.Waiting(Version(), w.scrape), ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
		ReadBufferSize: 16 << 10, MaxRequestBodySize: 1 << 20, Concurrency: 1000, NoDefaultServerHeader: true,
		DisableKeepalive: true, Logger: slog.NewLogLogger(w.log.Handler(), slog.LevelDebug),
	}
	lent := &lentListener{Listener: w.ln}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(lent); err != nil {
			w.log.Warn("calls are not answered while the admin waits for its database", "err", err)
		}
	}()
	return func() {
		_ = lent.Close() // also ends a Serve that has not begun yet
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.ShutdownWithContext(ctx) // callers who are slow get no answer
		<-ended
		lent.giveBack()
	}
}

// lentListener is a listener for one server that another one uses after it: Close ends
// Accept and leaves the listener open.
type lentListener struct {
	net.Listener
	closed atomic.Bool
}

// deadliner is a listener whose Accept can be interrupted.
type deadliner interface{ SetDeadline(t time.Time) error }

// Accept implements net.Listener.
func (l *lentListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil && l.closed.Load() {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close implements net.Listener.
func (l *lentListener) Close() error {
	l.closed.Store(true)
	if d, ok := l.Listener.(deadliner); ok {
		return d.SetDeadline(time.Unix(1, 0))
	}
	return nil
}

// giveBack makes the listener usable by another server.
func (l *lentListener) giveBack() {
	if d, ok := l.Listener.(deadliner); ok {
		_ = d.SetDeadline(time.Time{}) // a closed listener is reported by its next Accept
	}
}
