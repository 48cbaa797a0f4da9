// Package store keeps the admin's state in PostgreSQL. It has every statement,
// transaction and notification: no other package knows SQL. Reads are methods of Store,
// changes of the configuration methods of Change (see Store.Publish), and all other
// changes methods of Tx (see Store.InTx) or of Store.
package store

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Options say how a Store reaches its database.
type Options struct {
	URL              string          // a PostgreSQL URL or key=value list; it may hold a password
	MaxConns         int             // connections of the pool, without those of listeners; 0: 20
	StatementTimeout time.Duration   // bound on one statement; 0: 10 s
	Tracer           pgx.QueryTracer // sees every statement of the pool; nil: nobody does
	Log              *slog.Logger    // nil: discarded
}

// Store is a database with the tables of Migrate. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	queries *db.Queries
	dialing *pgx.ConnConfig // for connections outside the pool
	writing chan struct{}   // holds an element for each transaction under way, see inTx
	hooks   []PublishHook
	log     *slog.Logger
}

// connectWithin bounds one attempt to connect, which distinguishes a database that does
// not answer from a slow statement.
const connectWithin = 3 * time.Second

// Open returns a Store. It does not connect: the database may be started later.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.MaxConns == 0 {
		o.MaxConns = 20
	}
	if o.StatementTimeout == 0 {
		o.StatementTimeout = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("reading the database address: %w", err)
	}
	config.MaxConns = int32(min(o.MaxConns, 1000))
	prepareConn(config.ConnConfig, o.StatementTimeout)
	config.ConnConfig.Tracer = o.Tracer
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("preparing the database pool: %w", err)
	}
	return &Store{
		pool: pool, queries: db.New(pool), dialing: config.ConnConfig.Copy(),
		writing: make(chan struct{}, max(o.MaxConns-max(o.MaxConns/4, 1), 1)), log: o.Log,
	}, nil
}

// prepareConn sets the parameters of every connection.
func prepareConn(c *pgx.ConnConfig, statement time.Duration) {
	if c.ConnectTimeout == 0 || c.ConnectTimeout > connectWithin {
		c.ConnectTimeout = connectWithin
	}
	c.RuntimeParams["timezone"] = "UTC"
	c.RuntimeParams["statement_timeout"] = strconv.FormatInt(statement.Milliseconds(), 10)
	// A client that disappears in a transaction must not keep locks.
	c.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(2*statement.Milliseconds(), 10)
	// Most filters of lists are not set: only a plan for the given arguments drops
	// them and uses the right index.
	c.RuntimeParams["plan_cache_mode"] = "force_custom_plan"
	// Compiling a plan would take longer than running it.
	c.RuntimeParams["jit"] = "off"
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "sluice"
	}
}

// Close closes all connections and waits for those in use.
func (s *Store) Close() { s.pool.Close() }

// Ping returns ErrUnavailable unless the database answers and has its tables.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.State(ctx)
	return err
}

// Conns returns how many connections are open, and how many of them are idle.
func (s *Store) Conns() (open, idle int) {
	stat := s.pool.Stat()
	return int(stat.TotalConns()), int(stat.IdleConns())
}

// inTx runs work in one transaction. Transactions leave a quarter of the connections
// free: work may read outside its transaction, and would wait for ever if all
// connections were taken by others that wait as well.
func (s *Store) inTx(ctx context.Context, work func(*db.Queries) error) error {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return translate(ctx.Err())
	}
	work, done := claimed(ctx, work)
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return work(s.queries.WithTx(tx)) })
	if err == nil {
		done()
	}
	return translate(err)
}

// Page selects a part of a list.
type Page struct {
	Skip int // rows before it
	Max  int // rows in it; 0 or less: all
}

// limit returns the size of the page for SQL, where null is no limit.
func (p Page) limit() *int32 {
	if p.Max <= 0 {
		return nil
	}
	n := int32(min(p.Max, 1<<30))
	return &n
}

func (p Page) offset() int32 { return int32(min(max(p.Skip, 0), 1<<30)) }

// bounded is limit for lists that are never returned whole.
func (p Page) bounded() int32 {
	if p.Max <= 0 || p.Max > 1000 {
		return 1000
	}
	return int32(p.Max)
}
