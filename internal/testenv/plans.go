package testenv

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Statements is a tracer that records the statements sent over connections, with the
// arguments of their first use. It is safe for concurrent use.
type Statements struct {
	mu    sync.Mutex
	order []string
	args  map[string][]any
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *Statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, seen := s.args[data.SQL]; seen {
		return ctx
	}
	if s.args == nil {
		s.args = make(map[string][]any)
	}
	s.args[data.SQL] = slices.Clone(data.Args)
	s.order = append(s.order, data.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*Statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Each calls do with each statement, in the order of their first use, and the
// arguments of that use.
func (s *Statements) Each(do func(sql string, args []any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sql := range s.order {
		do(sql, s.args[sql])
	}
}

// A Plan is the plan of a statement that holds for all values of its parameters.
type Plan struct {
	Name string // that the generated code has for the statement
	SQL  string
	Text string // as EXPLAIN prints it
}

// statementName is the line that sqlc puts before a statement.
var statementName = regexp.MustCompile(`-- name: (\w+)`)

// Plans returns the generic plan of each statement that send sends over a connection
// to the database. Settings are statements to run before the plans are made.
func Plans(t testing.TB, dsn string, send func(*pgx.Conn), settings ...string) []Plan {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	sent := new(Statements)
	config.Tracer = sent
	sender, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close(context.Background())
	send(sender)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, setting := range append([]string{"set plan_cache_mode = force_generic_plan"}, settings...) {
		if _, err := conn.Exec(t.Context(), setting); err != nil {
			t.Fatal(err)
		}
	}
	var plans []Plan
	sent.Each(func(sql string, _ []any) {
		p := Plan{SQL: sql, Text: genericPlan(t, conn, fmt.Sprintf("s%d", len(plans)), sql)}
		if name := statementName.FindStringSubmatch(sql); name != nil {
			p.Name = name[1]
		}
		plans = append(plans, p)
	})
	return plans
}

// genericPlan returns the plan of a statement, which it prepares under a name.
func genericPlan(t testing.TB, conn *pgx.Conn, name, sql string) string {
	t.Helper()
	if _, err := conn.Exec(t.Context(), "prepare "+name+" as "+sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var parameters int
	if err := conn.QueryRow(t.Context(), "select cardinality(parameter_types) from pg_prepared_statements where name = $1", name).Scan(&parameters); err != nil {
		t.Fatal(err)
	}
	execute := "explain execute " + name
	if parameters > 0 {
		execute += "(" + strings.TrimSuffix(strings.Repeat("null, ", parameters), ", ") + ")"
	}
	rows, err := conn.Query(t.Context(), execute, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
