package rotatemaster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/rotatemaster"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

// world is a database with sealed values of every kind.
type world struct {
	t     *testing.T
	store *store.Store
	conn  *pgx.Conn
}

func newWorld(t *testing.T) *world {
	t.Helper()
	url := testenv.Database(t, func(ctx context.Context, url string) error {
		_, err := store.Migrate(ctx, url)
		return err
	}, "admin")
	st, err := store.Open(t.Context(), store.Options{URL: url, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	w := &world{t, st, conn}
	w.exec(`INSERT INTO orgs (id, name) VALUES ('one', 'one')`)
	w.exec(`INSERT INTO developers (id, org_id, email) VALUES ('dev', 'one', 'a@example.com')`)
	return w
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.conn.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func seal(t *testing.T, key secret.Key, place string) []byte {
	t.Helper()
	sealed, err := key.Seal([]byte("secret of "+place), []byte(place))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// fill adds so many rows to every table, sealed with a key.
func (w *world) fill(key secret.Key, rows int) {
	w.t.Helper()
	for i := range rows {
		id := fmt.Sprintf("%04d", i)
		w.exec(`INSERT INTO certificates (org_id, sum, pem, sealed_key) VALUES ('one', $1, '', $2)`, id, seal(w.t, key, "certificates one "+id+" sealed_key"))
		w.exec(`INSERT INTO key_requests (id, org_id, state, developer_id, policies, sealed_secret, body) VALUES ($1, 'one', 'pending', 'dev', '{}', $2, '{}')`,
			id, seal(w.t, key, "key_requests "+id+" sealed_secret"))
		w.exec(`INSERT INTO webhooks (id, org_id, url, events, sealed_secret, sealed_former) VALUES ($1, 'one', 'http://a', '{}', $2, $3)`,
			id, seal(w.t, key, "webhooks "+id+" sealed_secret"), seal(w.t, key, "webhooks "+id+" sealed_former"))
		w.exec(`INSERT INTO deliveries (id, org_id, kind, target, event, payload, sealed, state) VALUES ($1, 'one', 'letter', 'a', 'e', $2, true, 'pending')`,
			id, seal(w.t, key, "deliveries "+id+" payload"))
		w.exec(`INSERT INTO secrets (org_id, name, sealed_value, updated_by) VALUES ('one', $1, $2, 'a')`, id, seal(w.t, key, "secrets one "+id+" sealed_value"))
		w.exec(`INSERT INTO acme_entries (name, sealed_value) VALUES ($1, $2)`, id, seal(w.t, key, "acme_entries "+id+" sealed_value"))
	}
	w.exec(`INSERT INTO certificates (org_id, sum, pem, sealed_key) VALUES ('one', 'public', '', '')`)
	w.exec(`INSERT INTO deliveries (id, org_id, kind, target, event, payload, sealed, state) VALUES ('plain', 'one', 'hook', 'a', 'e', 'no secret', false, 'pending')`)
}

// opened counts values by which of the keys opens them.
func (w *world) opened(keys ...secret.Key) []int {
	w.t.Helper()
	counts := make([]int, len(keys)+1)
	for _, table := range store.SealedTables() {
		for after := ""; ; {
			found, last, err := table.Next(w.t.Context(), w.store, after)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, v := range found {
				counts[slices.IndexFunc(append(keys, secret.Key{}), func(k secret.Key) bool {
					plain, err := k.Open(v.Sealed, v.Place())
					return k.ID() == "" || err == nil && bytes.Equal(plain, []byte("secret of "+v.String()))
				})]++
			}
			if last == "" {
				break
			}
			after = last
		}
	}
	return counts
}

const rows, perRow = 230, 7 // more than a page

func TestEveryValueIsSealedWithTheNewKey(t *testing.T) {
	w, former, next := newWorld(t), secret.NewKey(), secret.NewKey()
	w.fill(former, rows)
	look := rotatemaster.Rotation{Store: w.store, Former: former, New: next, DryRun: true}
	counts, err := look.Run(t.Context())
	if err != nil || len(counts) != 6 || counts[2] != (rotatemaster.Count{Table: "webhooks", Former: 2 * rows}) {
		t.Fatalf("a look: %v, %v", counts, err)
	}
	if got := w.opened(former, next); !slices.Equal(got, []int{rows * perRow, 0, 0}) {
		t.Fatalf("a look changed something: %v", got)
	}
	last := 0
	turn := rotatemaster.Rotation{Store: w.store, Former: former, New: next, Progress: func(done, total int) { last = done * 100 / total }}
	if _, err := turn.Run(t.Context()); err != nil || last != 100 {
		t.Fatalf("%v, %d %%", err, last)
	}
	if got := w.opened(former, next); !slices.Equal(got, []int{0, rows * perRow, 0}) {
		t.Errorf("sealed with the former, the new and no key: %v", got)
	}
	audit, _, err := w.store.ListAudit(t.Context(), "one", store.AuditFilter{Kind: "master key"}, store.Page{})
	if err != nil || len(audit) != 1 || audit[0].Action != "rotated" || audit[0].ObjectID != next.ID() {
		t.Errorf("the audit log has %+v, %v", audit, err)
	}
	counts, err = turn.Run(t.Context())
	if err != nil || counts[0] != (rotatemaster.Count{Table: "certificates", New: rows}) {
		t.Errorf("once more: %v, %v", counts, err)
	}
}

func TestARotationThatIsEndedInTheMiddleIsTakenUpAgain(t *testing.T) {
	w, former, next := newWorld(t), secret.NewKey(), secret.NewKey()
	w.fill(former, rows)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := rotatemaster.Rotation{Store: w.store, Former: former, New: next, Progress: func(done, total int) {
		if done > total/2 {
			cancel()
		}
	}}
	if _, err := first.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	got := w.opened(former, next)
	if got[0] == 0 || got[1] == 0 || got[2] != 0 {
		t.Fatalf("in the middle: %v", got)
	}
	if both := w.opened(former.After(next)); both[1] != 0 {
		t.Errorf("%d values are not read by who knows both keys", both[1])
	}
	again := rotatemaster.Rotation{Store: w.store, Former: former, New: next}
	if _, err := again.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.opened(former, next); !slices.Equal(got, []int{0, rows * perRow, 0}) {
		t.Errorf("in the end: %v", got)
	}
}

func TestAValueOfAnotherKeyStopsEverything(t *testing.T) {
	w, former, next := newWorld(t), secret.NewKey(), secret.NewKey()
	w.fill(former, 20)
	w.exec(`UPDATE webhooks SET sealed_secret = $1 WHERE id < '0012'`, seal(t, secret.NewKey(), "elsewhere"))
	w.exec(`UPDATE deliveries SET payload = $1 WHERE id = '0003'`, seal(t, former, "deliveries 0004 payload"))
	turn := rotatemaster.Rotation{Store: w.store, Former: former, New: next}
	_, err := turn.Run(t.Context())
	for _, want := range []string{"13 sealed values", "nothing was changed", "webhooks 0000 sealed_secret: sealed with another key", "and 3 more"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, lacks %q", err, want)
		}
	}
	if got := w.opened(former, next); got[1] != 0 {
		t.Errorf("%d were sealed anew", got[1])
	}
	same := rotatemaster.Rotation{Store: w.store, Former: former, New: former}
	if _, err := same.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the new key is the former one") {
		t.Errorf("the same key: %v", err)
	}
}

// TestNoSealedColumnIsForgotten looks in the schema for columns that are named as
// sealed ones are.
func TestNoSealedColumnIsForgotten(t *testing.T) {
	w := newWorld(t)
	rows, err := w.conn.Query(t.Context(), `SELECT table_name || ' ' || column_name FROM information_schema.columns
		WHERE table_schema = 'public' AND data_type = 'bytea' AND (column_name LIKE 'sealed%' OR table_name = 'deliveries')`)
	if err != nil {
		t.Fatal(err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"master_key_check sealed"} // see TestARotationChangesTheMasterKeyOfTheDatabase
	for _, table := range store.SealedTables() {
		for _, column := range table.Columns {
			known = append(known, table.Name+" "+column)
		}
	}
	slices.Sort(there)
	slices.Sort(known)
	if !slices.Equal(there, known) {
		t.Errorf("sealed are %q, replaced %q", there, known)
	}
}
