package accounts

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/testenv"
)

// recorder keeps the statements that a connection is given.
type recorder struct{ statements []string }

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	r.statements = append(r.statements, d.SQL)
	return ctx
}

func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// fill makes tables with very many developers, keys and tokens.
func fill(ctx context.Context, dsn string) error {
	if _, err := store.Migrate(ctx, dsn); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for _, statement := range []string{
		"insert into orgs (id, name) select 'o' || n, 'o' from generate_series(1, 5) n",
		`insert into developers (id, org_id, email, inactive, verified_at, created_at)
			select 'd' || n, 'o' || 1 + n / 10000, 'Dev' || n || '@example.com', n % 100 = 0, case when n % 50 > 0 then now() end, now() - n * interval '1 second'
			from generate_series(0, 24999) n`,
		"insert into keys (key_hash, org_id, alias, active, apis, policies, body) select 'k' || n, 'o1', '', true, '{}', '{}', '{}' from generate_series(0, 99999) n",
		"insert into developer_keys (key_hash, org_id, developer_id, policies) select 'k' || n, 'o1', 'd' || n % 10000, '{p}' from generate_series(0, 99999) n",
		"insert into developer_subscriptions (developer_id, policy_id, key_hash) select 'd' || n % 10000, 'p' || n / 10000, 'k' || n from generate_series(0, 99999) n",
		"insert into developer_tokens (token_hash, developer_id, purpose, expires_at) select sha256(n::text::bytea), 'd' || n % 10000, 'session', now() + (n - 1000) * interval '1 second' from generate_series(0, 99999) n",
		"insert into oauth_clients (client_id, org_id, developer_id, policy_id, key_hash, secret_hash) select 'c' || n, 'o1', 'd' || n, 'p', 'k' || n, '' from generate_series(0, 19999) n",
		"insert into key_requests (id, org_id, state, developer_id, policies, body) select 'r' || n, 'o1', 'pending', 'd' || n, '{p}', '{}' from generate_series(0, 19999) n",
		"analyze",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return nil
}

func many(t *testing.T) string { return testenv.Database(t, fill, "many accounts") }

// statementsOf gives every statement about developers to a database once.
func statementsOf(t *testing.T, dsn string) []string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	seen := new(recorder)
	config.Tracer = seen
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	ctx, q, now := t.Context(), db.New(conn), time.Now()
	list := db.DevelopersByEmailParams{OrgID: "o1", First: "", Last: beyond, Max: 1}
	hash := make([]byte, 32)
	_, _ = q.OrgIsThere(ctx, "o1")
	_, _ = q.DeveloperByID(ctx, db.DeveloperByIDParams{OrgID: "o1", ID: "d1"})
	_, _ = q.DeveloperByEmail(ctx, db.DeveloperByEmailParams{OrgID: "o1", Email: "dev1@example.com"})
	_, _ = q.LockDeveloper(ctx, db.LockDeveloperParams{OrgID: "o1", ID: "d1"})
	_, _ = q.LockDeveloperByEmail(ctx, db.LockDeveloperByEmailParams{OrgID: "o1", Email: "dev1@example.com"})
	_, _ = q.UpdateDeveloper(ctx, db.UpdateDeveloperParams{OrgID: "o1", ID: "x", Fields: []byte("{}"), Extra: []byte("{}")})
	_, _ = q.ReplacePassword(ctx, db.ReplacePasswordParams{ID: "x", PasswordHistory: []string{}})
	_, _ = q.ConfirmDeveloper(ctx, db.ConfirmDeveloperParams{ID: "x"})
	_, _ = q.EnterDeveloper(ctx, db.EnterDeveloperParams{ID: "x"})
	_ = q.DeleteDeveloper(ctx, db.DeleteDeveloperParams{OrgID: "o1", ID: "x"})
	_ = q.DeleteRequestsOfDeveloper(ctx, "x")
	_, _ = q.CountDevelopers(ctx, db.CountDevelopersParams{OrgID: "o1", First: "a", Last: "b"})
	_, _ = q.DevelopersByEmail(ctx, list)
	_, _ = q.DevelopersByEmailDown(ctx, db.DevelopersByEmailDownParams(list))
	_, _ = q.DevelopersByCreation(ctx, db.DevelopersByCreationParams(list))
	_, _ = q.DevelopersByCreationDown(ctx, db.DevelopersByCreationDownParams(list))
	_, _ = q.KeysOfDevelopers(ctx, []string{"d1"})
	_, _ = q.SubscriptionsOfDevelopers(ctx, []string{"d1"})
	_, _ = q.ClientsOfDevelopers(ctx, []string{"d1"})
	_ = q.TrimDeveloperTokens(ctx, db.TrimDeveloperTokensParams{DeveloperID: "x", Purpose: "session"})
	_, _ = q.DeveloperByToken(ctx, db.DeveloperByTokenParams{TokenHash: hash, Purpose: "reset", At: now})
	_, _ = q.UseDeveloperToken(ctx, db.UseDeveloperTokenParams{TokenHash: hash, Purpose: "reset", At: now})
	_, _ = q.DeveloperBySession(ctx, db.DeveloperBySessionParams{TokenHash: hash, At: now, Idle: now})
	_ = q.TouchSession(ctx, db.TouchSessionParams{TokenHash: hash, At: now})
	_, _ = q.SessionsOfDeveloper(ctx, db.SessionsOfDeveloperParams{DeveloperID: "x", At: now, Idle: now})
	_, _ = q.DeleteSessions(ctx, db.DeleteSessionsParams{DeveloperID: "x", Spared: hash})
	_, _ = q.DeleteSession(ctx, db.DeleteSessionParams{DeveloperID: "x", Beginning: hash})
	_ = q.DeleteTokensOfPurpose(ctx, db.DeleteTokensOfPurposeParams{DeveloperID: "x"})
	_ = q.DeleteTokensOfDeveloper(ctx, "x")
	_, _ = q.SweepDeveloperTokens(ctx, db.SweepDeveloperTokensParams{Before: now.Add(-time.Hour), Max: 1})
	_, _ = q.SweepPendingDevelopers(ctx, db.SweepPendingDevelopersParams{Before: now.Add(-time.Hour), Max: 1})
	return seen.statements
}

// name is what the generated code calls a statement.
var name = regexp.MustCompile(`-- name: (\w+)`)

// TestEveryStatementHasAnIndex reads the plans that hold for all parameters, on a
// database in which reading a table whole would be slow.
func TestEveryStatementHasAnIndex(t *testing.T) {
	dsn := many(t)
	statements := statementsOf(t, dsn)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "set plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	if len(statements) != 31 {
		t.Errorf("%d statements were seen", len(statements))
	}
	for i, statement := range statements {
		plan := planOf(t, conn, fmt.Sprintf("s%d", i), statement)
		for _, table := range []string{"developers", "developer_keys", "developer_subscriptions", "developer_tokens", "oauth_clients", "key_requests"} {
			if strings.Contains(plan, "Seq Scan on "+table) {
				t.Errorf("%s reads a whole table:\n%s", name.FindStringSubmatch(statement)[1], plan)
			}
		}
		if strings.Contains(statement, "ORDER BY lower") && strings.Contains(plan, "Sort") {
			t.Errorf("%s sorts:\n%s", name.FindStringSubmatch(statement)[1], plan)
		}
	}
}

func planOf(t *testing.T, conn *pgx.Conn, as, statement string) string {
	t.Helper()
	if _, err := conn.Exec(t.Context(), "prepare "+as+" as "+statement, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	var parameters int
	if err := conn.QueryRow(t.Context(), "select cardinality(parameter_types) from pg_prepared_statements where name = $1", as).Scan(&parameters); err != nil {
		t.Fatal(err)
	}
	nulls := strings.TrimSuffix(strings.Repeat("null, ", parameters), ", ")
	rows, err := conn.Query(t.Context(), "explain execute "+as+"("+nulls+")", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
