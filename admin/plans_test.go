package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
)

// crowd fills the database with what an organisation of some size has, whose id
// stands for ORG: so many ROWS of what there is most of, and so many PEOPLE.
var crowd = []string{
	`insert into apis (id, org_id, name, domain, listen_path, routed, definition) select 'a'||i, 'ORG', 'API '||i, '', '/a'||i, true, json_build_object('api_id', 'a'||i, 'name', 'API '||i, 'org_id', 'ORG', 'proxy', json_build_object('listen_path', '/a'||i, 'target_url', 'http://up.example')) from generate_series(1, 1000) i`,
	`insert into policies (id, org_id, name, state, apis, body) select 'p'||i, 'ORG', 'Plan '||i, 'active', array['a'||i], json_build_object('id', 'p'||i, 'name', 'Plan '||i, 'rate', 10, 'per', 1, 'access_rights', json_build_object('a'||i, json_build_object('api_id', 'a'||i))) from generate_series(1, 1000) i`,
	`insert into keys (key_hash, org_id, alias, active, apis, policies, body) select encode(sha256(i::text::bytea), 'hex'), 'ORG', 'dev'||i%PEOPLE||'@dev.example', true, '{}', array['p'||1+i%1000], json_build_object('org_id', 'ORG', 'alias', 'dev'||i%PEOPLE||'@dev.example', 'apply_policies', array['p'||1+i%1000]) from generate_series(1, ROWS) i`,
	`insert into developers (id, org_id, email, inactive, created_at) select 'd'||i, 'ORG', 'dev'||i||'@dev.example', i%50 = 0, now() - i * interval '1 minute' from generate_series(1, PEOPLE) i`,
	`insert into developer_keys (key_hash, org_id, developer_id, policies) select encode(sha256(i::text::bytea), 'hex'), 'ORG', 'd'||1+i%PEOPLE, array['p'||1+i%1000] from generate_series(1, ROWS) i`,
	`insert into developer_subscriptions select 'd'||1+i%PEOPLE, 'p'||1+i%1000, encode(sha256(i::text::bytea), 'hex') from generate_series(1, ROWS) i on conflict do nothing`,
	`insert into developer_tokens (token_hash, developer_id, purpose, expires_at) select sha256(i::text::bytea), 'd'||1+i%PEOPLE, 'session', now() + interval '1 day' from generate_series(1, PEOPLE) i`,
	`insert into oauth_clients (client_id, org_id, developer_id, policy_id, key_hash, secret_hash) select 'c'||i, 'ORG', 'd'||1+i%PEOPLE, 'p1', encode(sha256(i::text::bytea), 'hex'), '' from generate_series(1, PEOPLE) i`,
	`insert into key_requests (id, org_id, state, developer_id, plan, policies, body, created_at) select 'r'||i, 'ORG', case when i%100 = 0 then 'pending' when i%10 = 0 then 'rejected' else 'approved' end, 'd'||1+i%PEOPLE, 'p'||1+i%1000, array['p'||1+i%1000], json_build_object('by_user', 'd'||1+i%PEOPLE, 'for_plan', 'p'||1+i%1000, 'version', 'v2'), now() - i * interval '1 minute' from generate_series(1, ROWS) i`,
	`insert into catalogue_entries (id, org_id, position, name, api_id, policy_id, shown, body) select 'e'||i, 'ORG', i, 'Entry '||i, 'a'||i, 'p'||i, i%10 > 0, json_build_object('id', 'e'||i, 'name', 'Entry '||i, 'api_id', 'a'||i, 'policy_id', 'p'||i, 'show', i%10 > 0) from generate_series(1, 1000) i`,
	`insert into documents (id, org_id, api_id, name, kind, source, clean, edition) select 'x'||i, 'ORG', 'a'||1+i%1000, 'Document '||i, 'markdown', '# Hello', '<h1>Hello</h1>', 1 from generate_series(1, PEOPLE) i`,
	`insert into webhooks (id, org_id, developer_id, name, url, events, sealed_secret) select 'w'||i, 'ORG', 'd'||1+i%PEOPLE, 'Hook '||i, 'https://hooks.example/'||i, '{*}', '' from generate_series(1, PEOPLE) i`,
	`insert into deliveries (id, org_id, kind, target, developer_id, event, payload, sealed, state, created_at, finished_at) select 'm'||i, 'ORG', case when i%10 = 0 then 'letter' else 'webhook' end, case when i%10 = 0 then 'dev'||i%PEOPLE||'@dev.example' else 'w'||1+i%PEOPLE end, 'd'||1+i%PEOPLE, 'key_event.created', '{}', false, case when i%10 = 0 then 'kept' when i%7 = 0 then 'failed' else 'done' end, now() - i * interval '1 second', now() from generate_series(1, ROWS) i`,
	`insert into audit_log (org_id, actor, actor_kind, action, object_kind, object_id) select case when i%200 = 0 then 'ORG' else 'other'||i%200 end, 'user'||i%20||'@example.com', 'user', 'updated', 'key', 'k'||i%1000 from generate_series(1, ROWS) i`,
	`insert into users (id, org_id, email, role, access_key_hash) select 'm'||i, 'ORG', 'member'||i||'@example.com', 'viewer', sha256(i::text::bytea) from generate_series(1, 2000) i`,
	`vacuum analyze`,
}

// questions are what is asked of lists, each with the parts that have indexes of
// their own. They stand for paths too, with ids in them.
var questions = []string{
	"/api/apis", "/api/apis?p=50", "/api/apis?q=API+77", "/api/apis?sort=-updated_at", "/api/apis?sort=created_at&p=20", "/api/apis/search?q=a5",
	"/api/apis?view=row", "/api/apis?view=row&p=20", "/api/apis?view=row&q=77&sort=-updated_at", "/api/apis?view=row&kind=rest&active=true&sort=created_at", "/api/apis?view=row&auth=token&label=x&sort=-listen_path",
	"/api/policies?view=row", "/api/policies?view=row&q=9&sort=-updated_at", "/api/policies/search?view=row&api_id=a7&sort=created_at",
	"/api/keys?view=row", "/api/keys?view=row&p=1000&sort=-name", "/api/keys?view=row&sort=-created_at", "/api/keys?view=row&q=dev77", "/api/keys?view=row&api_id=a7", "/api/keys?view=row&policy_id=p7", "/api/keys?view=row&active=true", "/api/keys?view=row&active=false", "/api/keys?view=row&label=x", "/api/apis/a7/keys?view=row",
	"/api/portal/policies", "/api/portal/policies?p=90", "/api/portal/policies?active=true", "/api/portal/policies/search?q=Plan+9&sort=-created_at", "/api/portal/policies/search?api_id=a7",
	"/api/keys", "/api/keys?p=5000", "/api/keys?q=dev77", "/api/keys?api_id=a7", "/api/keys/detailed?q=dev12", "/api/apis/a7/keys",
	"/api/users", "/api/users?q=member1", "/api/users?p=100", "/api/audit", "/api/audit?p=5000", "/api/audit?object_kind=key&object_id=k7", "/api/audit?actor=user3@example.com",
	"/api/config/revisions", "/api/certs", "/api/gateways",
	"/api/portal/developers", "/api/portal/developers?p=900", "/api/portal/developers?q=dev77", "/api/portal/developers?inactive=true", "/api/portal/developers?sort=-created_at", "/api/portal/developers?sort=created_at&p=800", "/api/portal/developers/d7",
	"/api/portal/developers/d7/keys", "/api/portal/developers/d7/oauth-clients",
	"/api/portal/requests", "/api/portal/requests?p=9000", "/api/portal/requests?approved=false", "/api/portal/requests?approved=true", "/api/portal/requests?state=pending", "/api/portal/requests?state=rejected&p=500", "/api/portal/requests?by_user=d7", "/api/portal/requests?by_user=d7&state=approved", "/api/portal/requests?for_plan=p7", "/api/portal/requests?for_plan=p7&state=pending", "/api/portal/requests?q=r77",
	"/api/portal/requests/r7",
	"/api/portal/catalogue/entries", "/api/portal/catalogue/entries?q=Entry+7", "/api/portal/catalogue/entries?api_id=a7", "/api/portal/catalogue/entries?policy_id=p7", "/api/portal/catalogue/entries?show=true&p=50", "/api/portal/catalogue",
	"/api/portal/public/catalogue", "/api/portal/public/catalogue?q=Entry+7", "/api/portal/public/catalogue?p=80",
	"/api/portal/documentation", "/api/portal/documentation?api_id=a7", "/api/portal/documentation?doc_type=markdown&p=400", "/api/portal/documentation?q=Document+7",
	"/api/portal/webhooks", "/api/portal/webhooks?p=900", "/api/portal/webhooks?developer=d7", "/api/portal/webhooks?q=https://hooks.example/77", "/api/portal/webhooks/w7/deliveries", "/api/portal/webhooks/w7/deliveries?delivery_state=failed",
	"/api/portal/deliveries", "/api/portal/deliveries?p=9000", "/api/portal/deliveries?delivery_state=failed", "/api/portal/deliveries?delivery_state=done&p=5000", "/api/portal/deliveries?webhook=w7", "/api/portal/deliveries?developer=d7",
	"/api/portal/mailbox", "/api/portal/mailbox?q=dev70@dev.example", "/api/portal/mailbox?p=900",
	"/api/usage", "/api/usage?api=a7", "/api/usage/rejections", "/api/keys/4a44dc15364204a80fe80e9039455cc1608281820fe2b24f1e5233ade6af1dd5/usage?hashed=true",
}

// wholeTables are those that are small whatever an organisation has, or of which a
// question is about every row.
var wholeTables = map[string]bool{
	"orgs": true, "config_state": true, "gateways": true, "portal_objects": true, "outbox": true, "certificates": true, "secrets": true, "goose_db_version": true,
}

// statements notes every statement of a store with the arguments of its first use.
type statements struct {
	mu   sync.Mutex
	seen map[string][]any
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen[data.SQL]; !ok {
		s.seen[data.SQL] = slices.Clone(data.Args)
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// crowded is a running admin over a database that is full, and what is asked of it.
func crowded(t testing.TB, rows int) (*bench, *statements) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords, d.MasterKey = passwords(), secret.NewKey() })
	org := b.Text("select id from orgs where id <> 'second'")
	size := strings.NewReplacer("ORG", org, "ROWS", strconv.Itoa(rows), "PEOPLE", strconv.Itoa(rows/10))
	for _, statement := range crowd {
		b.Exec(size.Replace(statement))
	}
	asked := &statements{seen: make(map[string][]any)}
	st, err := store.Open(t.Context(), store.Options{URL: b.DSN, MaxConns: 4, Tracer: asked})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	_, b.URL = b.serve(st, func(d *Deps) { d.KeyOptions.Passwords, d.MasterKey = passwords(), secret.NewKey() })
	return b, asked
}

// TestEveryQuestionIsAnsweredByAnIndex reads the plans of all statements that
// lists and searches come to.
func TestEveryQuestionIsAnsweredByAnIndex(t *testing.T) {
	b, asked := crowded(t, 2_000)
	for _, q := range questions {
		b.Call("GET", q, b.admin, "").Want(200)
	}
	conn, err := pgx.Connect(t.Context(), b.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// A plan may read a table from end to end where that is quicker than by an index;
	// here it has to do without, so that only what has no index does.
	if _, err := conn.Exec(t.Context(), "set enable_seqscan = off"); err != nil {
		t.Fatal(err)
	}
	asked.mu.Lock()
	defer asked.mu.Unlock()
	partial := partialIndexes(t, conn)
	read := 0
	for _, sql := range slices.Sorted(maps.Keys(asked.seen)) {
		if strings.HasPrefix(sql, "-- name: Bundle") { // what gateways take is all there is
			continue
		}
		plan, ok := explain(t, conn, sql, asked.seen[sql])
		if !ok {
			continue
		}
		read++
		for _, problem := range plan.unindexed(partial) {
			t.Errorf("%s\nin %s", problem, sql)
		}
	}
	t.Logf("%d plans of %d questions were read", read, len(questions))
}

// A node is a part of a plan.
type node struct {
	Type   string `json:"Node Type"`
	Table  string `json:"Relation Name"`
	Index  string `json:"Index Name"`
	Cond   string `json:"Index Cond"`
	Filter string `json:"Filter"`
	Parent string `json:"Parent Relationship"`
	Plans  []node `json:"Plans"`
}

// explain returns the plan of a statement; ok is false for one that has none.
func explain(t *testing.T, conn *pgx.Conn, sql string, args []any) (n node, ok bool) {
	t.Helper()
	word := strings.ToLower(strings.TrimLeft(withoutComments(sql), " \n"))
	if !strings.HasPrefix(word, "select") && !strings.HasPrefix(word, "with") {
		return n, false
	}
	var text []byte
	if err := conn.QueryRow(t.Context(), "explain (format json) "+sql, args...).Scan(&text); err != nil {
		t.Errorf("%s: %v", sql, err)
		return n, false
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	return plans[0].Plan, true
}

// withoutComments is a statement without the lines that name it.
func withoutComments(sql string) string {
	var lines []string
	for line := range strings.SplitSeq(sql, "\n") {
		if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// partialIndexes are those that hold some of the rows alone: reading one from end
// to end reads no other rows.
func partialIndexes(t *testing.T, conn *pgx.Conn) map[string]bool {
	t.Helper()
	rows, err := conn.Query(t.Context(), "select indexname from pg_indexes where indexdef like '% WHERE %'")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	partial := make(map[string]bool, len(names))
	for _, name := range names {
		partial[name] = true
	}
	return partial
}

// unindexed tells where a plan looks at rows without an index that leads to them.
func (n *node) unindexed(partial map[string]bool) (problems []string) {
	switch {
	case wholeTables[n.Table] || strings.HasPrefix(n.Table, "usage_") || partial[n.Index]:
	case n.Parent == "SubPlan": // made once for all rows, where that is less than looking up each
		return nil
	case n.Type == "Seq Scan":
		problems = append(problems, fmt.Sprintf("%s is read from end to end, by %s", n.Table, n.Filter))
	case (n.Type == "Index Scan" || n.Type == "Index Only Scan" || n.Type == "Bitmap Index Scan") && n.Cond == "":
		problems = append(problems, fmt.Sprintf("%s %s is read from end to end, by %s", n.Table, n.Index, n.Filter))
	}
	for i := range n.Plans {
		problems = append(problems, n.Plans[i].unindexed(partial)...)
	}
	return problems
}

// BenchmarkLists measures every page of a list and every search, and says which
// take longest.
func BenchmarkLists(b *testing.B) {
	full, _ := crowded(b, 100_000)
	const rounds = 9
	took := make(map[string]time.Duration, len(questions))
	for b.Loop() {
		for _, q := range questions {
			times := make([]time.Duration, 0, rounds)
			for range rounds {
				began := time.Now()
				full.Call("GET", q, full.admin, "").Want(200)
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			took[q] = times[rounds/2]
		}
	}
	order := slices.SortedFunc(maps.Keys(took), func(x, y string) int { return int(took[y] - took[x]) })
	for _, q := range order[:10] {
		b.Logf("%8.1f ms  %s", float64(took[q].Microseconds())/1000, q)
	}
	b.ReportMetric(float64(took[order[0]].Microseconds())/1000, "ms/slowest")
	b.ReportMetric(float64(took[order[len(order)/2]].Microseconds())/1000, "ms/median")
}
