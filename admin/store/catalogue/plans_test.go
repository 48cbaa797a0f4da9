package catalogue

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

// fill makes tables with very many entries and documents: 20 catalogues as large as
// they get.
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
		"insert into orgs (id, name) select 'o' || n, 'o' from generate_series(0, 19) n",
		`insert into apis (id, org_id, name, domain, listen_path, routed, definition)
			select 'a' || n, 'o' || n % 20, 'API ' || n, '', '/' || n, true, '{}' from generate_series(0, 999) n`,
		`insert into policies (id, org_id, name, state, apis, body)
			select 'p' || n, 'o' || n % 20, 'Policy ' || n, case when n % 10 = 0 then 'draft' else 'active' end, '{}', '{}' from generate_series(0, 9999) n`,
		"insert into portal_objects (org_id, kind, id, body) select id, kind, id || kind, '{}' from orgs, unnest(array['catalogue', 'configuration']) kind",
		`insert into catalogue_entries (id, org_id, position, name, api_id, policy_id, document, shown, body)
			select 'e' || n, 'o' || n % 20, n / 20, 'Entry ' || n, 'a' || n % 1000, 'p' || n % 10000, case when n % 3 = 0 then 'd' || n else '' end, n % 4 > 0, '{"name":"x"}' from generate_series(0, 99999) n`,
		`insert into documents (id, org_id, api_id, name, kind, source, clean, edition, created_at)
			select 'd' || n, 'o' || n % 20, 'a' || n % 1000, 'Document ' || n, 'markdown', repeat('text ', 100), 'x', 1, now() - n * interval '1 second' from generate_series(0, 99999) n`,
		"analyze",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return nil
}

func many(t *testing.T) string { return testenv.Database(t, fill, "many entries") }

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
	none := []string{"x"}
	_, _ = q.OrgExists(ctx, "x")
	_, _ = q.PortalObject(ctx, db.PortalObjectParams{OrgID: "o0", Kind: "catalogue"})
	_, _ = q.LockPortalObject(ctx, db.LockPortalObjectParams{OrgID: "o0", Kind: "catalogue"})
	_, _ = q.UpdatePortalObject(ctx, db.UpdatePortalObjectParams{OrgID: "x", Kind: "catalogue", Body: []byte("{}")})
	_, _ = q.CatalogueEntry(ctx, db.CatalogueEntryParams{OrgID: "o0", ID: "x"})
	_, _ = q.CatalogueEntryByPolicy(ctx, db.CatalogueEntryByPolicyParams{OrgID: "o0", PolicyID: "x"})
	_, _ = q.CatalogueEntries(ctx, "x")
	_, _ = q.CountCatalogueEntries(ctx, db.CountCatalogueEntriesParams{OrgID: "o0"})
	_, _ = q.ListCatalogueEntries(ctx, db.ListCatalogueEntriesParams{OrgID: "o0", Max: 1})
	_, _ = q.CountOffers(ctx, db.CountOffersParams{OrgID: "o0"})
	_, _ = q.ListOffers(ctx, db.ListOffersParams{OrgID: "o0", Max: 1})
	_, _ = q.Offer(ctx, db.OfferParams{OrgID: "o0", ID: "x"})
	_, _ = q.OfferedAPIs(ctx, db.OfferedAPIsParams{OrgID: "o0", IDs: none})
	_, _ = q.OfferedPolicies(ctx, db.OfferedPoliciesParams{OrgID: "o0", IDs: none})
	_, _ = q.CatalogueSize(ctx, "x")
	_ = q.UpdateCatalogueEntries(ctx, db.UpdateCatalogueEntriesParams{OrgID: "x", IDs: none})
	_ = q.MoveCatalogueEntries(ctx, db.MoveCatalogueEntriesParams{OrgID: "x", IDs: none})
	_ = q.DeleteCatalogueEntries(ctx, db.DeleteCatalogueEntriesParams{OrgID: "x", IDs: none})
	_, _ = q.KnownPolicies(ctx, db.KnownPoliciesParams{OrgID: "o0", IDs: none})
	_, _ = q.KnownDocuments(ctx, db.KnownDocumentsParams{OrgID: "o0", IDs: none})
	_, _ = q.DocumentByID(ctx, db.DocumentByIDParams{OrgID: "o0", ID: "x"})
	_, _ = q.CleanDocument(ctx, db.CleanDocumentParams{OrgID: "o0", ID: "x"})
	_, _ = q.LockDocument(ctx, db.LockDocumentParams{OrgID: "o0", ID: "x"})
	_, _ = q.UpdateDocument(ctx, db.UpdateDocumentParams{OrgID: "x", ID: "x", Kind: "markdown"})
	_ = q.RenewDocument(ctx, db.RenewDocumentParams{OrgID: "x", ID: "x"})
	_ = q.DeleteDocument(ctx, db.DeleteDocumentParams{OrgID: "x", ID: "x"})
	_, _ = q.EntriesWithDocument(ctx, db.EntriesWithDocumentParams{OrgID: "o0", Document: "d0"})
	_, _ = q.CountDocuments(ctx, db.CountDocumentsParams{OrgID: "o0"})
	_, _ = q.ListDocuments(ctx, db.ListDocumentsParams{OrgID: "o0", Max: 1})
	return seen.statements
}

// name is what the generated code calls a statement.
var name = regexp.MustCompile(`-- name: (\w+)`)

// TestEveryStatementHasAnIndex reads the plans that hold for all parameters, on a
// database in which reading a table whole would be slow. Plans may sort: what an
// organisation has is bounded.
func TestEveryStatementHasAnIndex(t *testing.T) {
	dsn := many(t)
	statements := statementsOf(t, dsn)
	if len(statements) != 29 {
		t.Errorf("%d statements were seen", len(statements))
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "set plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	for i, statement := range statements {
		what := name.FindStringSubmatch(statement)[1]
		plan := planOf(t, conn, fmt.Sprintf("s%d", i), statement)
		for _, table := range []string{"catalogue_entries", "documents", "policies"} {
			if strings.Contains(plan, "Seq Scan on "+table) {
				t.Errorf("%s reads a whole table:\n%s", what, plan)
			}
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
