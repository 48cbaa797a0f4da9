package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/testenv"
)

// A crowd is a database with so many rows that reading a table from end to end would
// be slow, and the statements whose plans are tested on it.
type crowd struct {
	name       string
	rows       []string // statements that make the rows
	statements func(ctx context.Context, q *db.Queries)
	count      int      // of the statements
	tables     []string // which no statement may read from end to end
	settings   []string
	sorts      string // a statement that holds this text must not sort; "": all may
}

func (c *crowd) fill(ctx context.Context, dsn string) error {
	if _, err := Migrate(ctx, dsn); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for _, statement := range append(c.rows, "analyze") {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return nil
}

func TestEveryPortalStatementUsesAnIndex(t *testing.T) {
	for _, c := range []crowd{manyDevelopers(), largeCatalogues(), manyMessages()} {
		t.Run(c.name, func(t *testing.T) {
			dsn := testenv.Database(t, c.fill, c.name)
			plans := testenv.Plans(t, dsn, func(conn *pgx.Conn) { c.statements(t.Context(), db.New(conn)) }, c.settings...)
			if len(plans) != c.count {
				t.Errorf("%d statements were sent, want %d", len(plans), c.count)
			}
			for _, p := range plans {
				for _, table := range c.tables {
					if strings.Contains(p.Text, "Seq Scan on "+table) {
						t.Errorf("%s reads a whole table:\n%s", p.Name, p.Text)
					}
				}
				if c.sorts != "" && strings.Contains(p.SQL, c.sorts) && strings.Contains(p.Text, "Sort") {
					t.Errorf("%s sorts:\n%s", p.Name, p.Text)
				}
			}
		})
	}
}

// manyDevelopers are 25,000 developers with 100,000 keys and tokens.
func manyDevelopers() crowd {
	return crowd{
		name: "many developers", count: 30, tables: []string{"developers", "developer_keys", "developer_subscriptions", "developer_tokens", "oauth_clients", "key_requests"}, sorts: "ORDER BY lower",
		rows: []string{
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
		},
		statements: manyDevelopersStatements,
	}
}

func manyDevelopersStatements(ctx context.Context, q *db.Queries) {
	now, hash := time.Now(), make([]byte, 32)
	list := db.DevelopersByEmailParams{OrgID: "o1", First: "", Last: lastCharacter, Max: 1}
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
}

// largeCatalogues are 20 catalogues as large as they get. Plans may sort: what an
// organisation has is bounded.
func largeCatalogues() crowd {
	return crowd{
		name: "large catalogues", count: 29, tables: []string{"catalogue_entries", "documents", "policies"},
		rows: []string{
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
		},
		statements: largeCataloguesStatements,
	}
}

func largeCataloguesStatements(ctx context.Context, q *db.Queries) {
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
}

// manyMessages are 100,000 webhooks and messages. Sequential scans are switched off:
// where a page may have any size, the planner cannot know which is quicker.
func manyMessages() crowd {
	return crowd{
		name: "many messages", count: 31, tables: []string{"deliveries", "webhooks"},
		settings: []string{"set enable_seqscan = off"}, sorts: ":many\nSELECT * FROM",
		rows: []string{
			"insert into orgs (id, name) select 'o' || n, 'o' from generate_series(0, 4) n",
			"insert into developers (id, org_id, email) select 'd' || n, 'o' || n % 5, 'dev' || n || '@example.com' from generate_series(0, 9999) n",
			`insert into webhooks (id, org_id, developer_id, name, url, events, sealed_secret, created_at)
			select 'w' || n, 'o' || n % 5, case when n % 1000 > 0 then 'd' || n % 10000 end, 'Hook ' || n, 'https://example.com', '{*}', '', now() - n * interval '1 second' from generate_series(0, 99999) n`,
			`insert into deliveries (id, org_id, kind, target, developer_id, event, payload, sealed, state, next_at, created_at, finished_at)
			select 'm' || n, 'o' || n % 5, (array['webhook', 'letter'])[1 + n % 2], 'w' || n % 20000, 'd' || n % 10000, 'e', '', false,
				case when n % 10 = 0 then 'pending' when n % 7 = 0 then 'failed' else 'done' end, now() + (n - 50000) * interval '1 second', now() - n * interval '1 second',
				case when n % 10 > 0 then now() - n * interval '1 second' end
			from generate_series(0, 99999) n`,
		},
		statements: manyMessagesStatements,
	}
}

func manyMessagesStatements(ctx context.Context, q *db.Queries) {
	_, _ = q.PutDelivery(ctx, db.PutDeliveryParams{ID: "new", OrgID: "o0", Kind: "webhook", Payload: []byte{}, Bound: 10})
	_, _ = q.TakeDeliveries(ctx, db.TakeDeliveriesParams{Kind: "webhook", Busy: []string{}, Max: 1})
	_, _ = q.SettleDelivery(ctx, db.SettleDeliveryParams{ID: "x", State: MessageDone})
	_ = q.ReturnDelivery(ctx, db.ReturnDeliveryParams{ID: "x"})
	_ = q.HoldDeliveries(ctx, db.HoldDeliveriesParams{Kind: "webhook", Target: "w0"})
	_ = q.DropDeliveries(ctx, db.DropDeliveriesParams{Kind: "webhook", Target: "x"})
	_, _ = q.DeliveryByID(ctx, db.DeliveryByIDParams{OrgID: "o0", ID: "x"})
	_, _ = q.LockDelivery(ctx, db.LockDeliveryParams{OrgID: "o0", ID: "x"})
	_ = q.ReplayDelivery(ctx, "x")
	_, _ = q.CountDeliveries(ctx, "o0")
	_, _ = q.ListDeliveries(ctx, db.ListDeliveriesParams{OrgID: "o0", Max: 1})
	_, _ = q.CountDeliveriesInState(ctx, db.CountDeliveriesInStateParams{OrgID: "o0", State: MessageFailed})
	_, _ = q.ListDeliveriesInState(ctx, db.ListDeliveriesInStateParams{OrgID: "o0", State: MessageFailed, Max: 1})
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
}
