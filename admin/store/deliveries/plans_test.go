package deliveries

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/testenv"
)

// fill makes tables with very many webhooks and messages.
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
		"insert into orgs (id, name) select 'o' || n, 'o' from generate_series(0, 4) n",
		"insert into developers (id, org_id, email) select 'd' || n, 'o' || n % 5, 'dev' || n || '@example.com' from generate_series(0, 9999) n",
		`insert into webhooks (id, org_id, developer_id, name, url, events, sealed_secret, created_at)
			select 'w' || n, 'o' || n % 5, case when n % 1000 > 0 then 'd' || n % 10000 end, 'Hook ' || n, 'https://example.com', '{*}', '', now() - n * interval '1 second' from generate_series(0, 99999) n`,
		`insert into deliveries (id, org_id, kind, target, developer_id, event, payload, sealed, state, next_at, created_at, finished_at)
			select 'm' || n, 'o' || n % 5, (array['webhook', 'letter'])[1 + n % 2], 'w' || n % 20000, 'd' || n % 10000, 'e', '', false,
				case when n % 10 = 0 then 'pending' when n % 7 = 0 then 'failed' else 'done' end, now() + (n - 50000) * interval '1 second', now() - n * interval '1 second',
				case when n % 10 > 0 then now() - n * interval '1 second' end
			from generate_series(0, 99999) n`,
		"analyze",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return nil
}

func many(t *testing.T) string { return testenv.Database(t, fill, "many deliveries") }

// recorder keeps the statements that a connection is given.
type recorder struct{ statements []string }

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	r.statements = append(r.statements, d.SQL)
	return ctx
}

func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// statementsOf gives every statement that has a condition to a database once.
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
	ctx, q := t.Context(), db.New(conn)
	_, _ = q.PutDelivery(ctx, db.PutDeliveryParams{ID: "new", OrgID: "o0", Kind: "webhook", Payload: []byte{}, Bound: 10})
	_, _ = q.TakeDeliveries(ctx, db.TakeDeliveriesParams{Kind: "webhook", Busy: []string{}, Max: 1})
	_, _ = q.SettleDelivery(ctx, db.SettleDeliveryParams{ID: "x", State: Done})
	_ = q.ReturnDelivery(ctx, db.ReturnDeliveryParams{ID: "x"})
	_ = q.HoldDeliveries(ctx, db.HoldDeliveriesParams{Kind: "webhook", Target: "w0"})
	_ = q.DropDeliveries(ctx, db.DropDeliveriesParams{Kind: "webhook", Target: "x"})
	_, _ = q.DeliveryByID(ctx, db.DeliveryByIDParams{OrgID: "o0", ID: "x"})
	_, _ = q.LockDelivery(ctx, db.LockDeliveryParams{OrgID: "o0", ID: "x"})
	_ = q.ReplayDelivery(ctx, "x")
	_, _ = q.CountDeliveries(ctx, "o0")
	_, _ = q.ListDeliveries(ctx, db.ListDeliveriesParams{OrgID: "o0", Max: 1})
	_, _ = q.CountDeliveriesInState(ctx, db.CountDeliveriesInStateParams{OrgID: "o0", State: Failed})
	_, _ = q.ListDeliveriesInState(ctx, db.ListDeliveriesInStateParams{OrgID: "o0", State: Failed, Max: 1})
	_, _ = q.CountDeliveriesTo(ctx, db.CountDeliveriesToParams{OrgID: "o0", Target: "w0"})
	_, _ = q.ListDeliveriesTo(ctx, db.ListDeliveriesToParams{OrgID: "o0", Target: "w0", Max: 1})
	_, _ = q.CountDeliveriesFor(ctx, db.CountDeliveriesForParams{OrgID: "o0", DeveloperID: "d0"})
	_, _ = q.ListDeliveriesFor(ctx, db.ListDeliveriesForParams{OrgID: "o0", DeveloperID: "d0", Max: 1})
	_, _ = q.SweepDeliveries(ctx, db.SweepDeliveriesParams{KeepSeconds: 1e9, Max: 1})
	_, _ = q.DeliveryBacklog(ctx)
	_, _ = q.WebhookByID(ctx, db.WebhookByIDParams{OrgID: "o0", ID: "x"})
	_, _ = q.LockWebhook(ctx, db.LockWebhookParams{OrgID: "o0", ID: "x"})
	_, _ = q.UpdateWebhook(ctx, db.UpdateWebhookParams{ID: "x", Events: []string{}})
	_, _ = q.WebhooksHearing(ctx, db.WebhooksHearingParams{OrgID: "o0", DeveloperID: "d0", Event: "e"})
	_, _ = q.CountWebhooks(ctx, "o0")
	_, _ = q.ListWebhooks(ctx, db.ListWebhooksParams{OrgID: "o0", Max: 1})
	_, _ = q.CountWebhooksNamed(ctx, db.CountWebhooksNamedParams{OrgID: "o0", First: "hook 1", Last: "hook 2"})
	_, _ = q.ListWebhooksNamed(ctx, db.ListWebhooksNamedParams{OrgID: "o0", First: "hook 1", Last: "hook 2", Max: 1})
	_, _ = q.CountWebhooksFor(ctx, db.CountWebhooksForParams{OrgID: "o0", DeveloperID: "d0"})
	_, _ = q.ListWebhooksFor(ctx, db.ListWebhooksForParams{OrgID: "o0", DeveloperID: "d0", Max: 1})
	_, _ = q.CountWebhooksOfOrg(ctx, "o0")
	_, _ = q.PortalEvents(ctx, "o0")
	return seen.statements
}

// name is what the generated code calls a statement.
var name = regexp.MustCompile(`-- name: (\w+)`)

// TestEveryStatementHasAnIndex reads the plans that hold for all parameters, on a
// database in which reading a table whole would be slow. They have to do without it
// here: where a page may have any size, nobody knows which is quicker.
func TestEveryStatementHasAnIndex(t *testing.T) {
	dsn := many(t)
	statements := statementsOf(t, dsn)
	if len(statements) != 31 {
		t.Errorf("%d statements were seen", len(statements))
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "set plan_cache_mode = force_generic_plan; set enable_seqscan = off"); err != nil {
		t.Fatal(err)
	}
	for i, statement := range statements {
		plan := planOf(t, conn, fmt.Sprintf("s%d", i), statement)
		if strings.Contains(plan, "Seq Scan on deliveries") || strings.Contains(plan, "Seq Scan on webhooks") {
			t.Errorf("%s reads a whole table:\n%s", name.FindStringSubmatch(statement)[1], plan)
		}
		if strings.Contains(statement, ":many\nSELECT * FROM") && strings.Contains(plan, "Sort") {
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
	execute := "explain execute " + as
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
