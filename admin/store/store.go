// Package store keeps the admin's state in PostgreSQL: every statement,
// transaction and notification. It is the only room that knows SQL.
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
	MaxConns         int             // connections of the pool, the listener's not counted; 0: 20
	StatementTimeout time.Duration   // longest time for one statement; 0: 10 s
	Tracer           pgx.QueryTracer // sees every statement of the pool; nil: nobody does
	Log              *slog.Logger    // nil: discarded
}

// Store is a database with the tables of Migrate. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	queries *db.Queries
	dialing *pgx.ConnConfig // for connections beside the pool
	writing chan struct{}   // one for each transaction under way, see inTx
	log     *slog.Logger
}

// connectWithin bounds one attempt to connect, so that a database that does not
// answer is told apart from a slow statement.
const connectWithin = 3 * time.Second

// Open returns a Store. It does not connect: the database may come later.
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

// prepareConn sets what every connection has, whatever the server's defaults.
func prepareConn(c *pgx.ConnConfig, statement time.Duration) {
	if c.ConnectTimeout == 0 || c.ConnectTimeout > connectWithin {
		c.ConnectTimeout = connectWithin
	}
	c.RuntimeParams["timezone"] = "UTC"
	c.RuntimeParams["statement_timeout"] = strconv.FormatInt(statement.Milliseconds(), 10)
	// A client that vanished in a transaction must not keep others waiting.
	c.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(2*statement.Milliseconds(), 10)
	// Lists have filters that are mostly left out: only a plan for the arguments
	// themselves can leave them out as well, and take the index that is right.
	c.RuntimeParams["plan_cache_mode"] = "force_custom_plan"
	// To compile a plan takes longer than to carry it out: none reads very much.
	c.RuntimeParams["jit"] = "off"
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "sluice"
	}
}

// Close ends all connections and waits for those in use.
func (s *Store) Close() { s.pool.Close() }

// Ping tells whether the database answers and has its tables; if not, the error
// is ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.State(ctx)
	return err
}

// Conns returns how many connections are open, and how many of them are idle.
func (s *Store) Conns() (open, idle int) {
	stat := s.pool.Stat()
	return int(stat.TotalConns()), int(stat.IdleConns())
}

// inTx runs work in one transaction: all of it happens, or nothing. Transactions
// never take a quarter of the connections: what work reads outside of its
// transaction finds one, where otherwise all could wait for each other.
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

// Page says which part of a list is wanted.
type Page struct {
	Skip int // rows before it
	Max  int // rows in it; 0 or less: all
}

// limit is the page's size as SQL has it: null is no limit.
func (p Page) limit() *int32 {
	if p.Max <= 0 {
		return nil
	}
	n := int32(min(p.Max, 1<<30))
	return &n
}

func (p Page) offset() int32 { return int32(min(max(p.Skip, 0), 1<<30)) }

// bounded is limit for lists that are never given out whole.
func (p Page) bounded() int32 {
	if p.Max <= 0 || p.Max > 1000 {
		return 1000
	}
	return int32(p.Max)
}
