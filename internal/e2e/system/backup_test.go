package system

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// allRows returns the rows of all tables of a database, sorted.
func allRows(t *testing.T, dsn string) map[string]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	read := func(query string) (lines []string) {
		t.Helper()
		rows, err := conn.Query(t.Context(), query)
		if err == nil {
			lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return lines
	}
	all := map[string]string{}
	for _, table := range read(`SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'goose_db_version'`) {
		all[table] = strings.Join(read("SELECT t::text FROM "+pgx.Identifier{table}.Sanitize()+" t ORDER BY 1"), "\n")
	}
	return all
}

// TestTheRestoreDrill backs an installation up, destroys its database, its store and its
// directories, and restores it: every row is as it was, and so are keys and secrets.
func TestTheRestoreDrill(t *testing.T) {
	t.Parallel()
	db := rig.NewDatabase(t)
	s := newSplit(t, 1, db.Dsn)
	path, key := s.governed("calm", 1_000_000)
	revoked := s.rest.NewKey(object{"apply_policies": []string{"calm"}})
	s.everywhere("the key", path, revoked, status(200))
	s.rest.Do("DELETE", "/api/keys/"+revoked, nil)
	site := testenv.NewAuthority(t, "servers").Server("site.example")
	s.rest.Do("POST", "/api/certs", object{"pem": site.CertPEM + site.KeyPEM})
	s.rest.Do("POST", "/api/portal/webhooks", object{"name": "h", "url": "https://example.com/", "events": []string{"*"}})
	exported := s.admin.CLI("export").Wants(t, 0).Stdout
	adminKey := s.admin.AdminKey()

	dir := t.TempDir()
	phrase := filepath.Join(dir, "passphrase")
	rig.SaveText(t, phrase, rig.Plant("a passphrase of this test")+"\n")
	from := settings{"database.url": db.Dsn, "data_dir": s.admin.Settings["data_dir"]}
	backup := func(name string, more ...string) rig.Result {
		return rig.Command(t, from, append([]string{"backup", filepath.Join(dir, name)}, more...)...)
	}
	load := s.traffic(2, path, key)
	load.AwaitMore(50)
	backup("while-it-runs", "--passphrase-file", phrase).Wants(t, 0, "admin.key master.key", "the file is encrypted")
	load.Stop()
	s.gateways[0].Stop()
	s.admin.Stop()
	backup("at-rest", "--passphrase-file", phrase).Wants(t, 0)
	backup("at-rest", "--passphrase-file", phrase).Wants(t, 2, "exists")
	backup("in-clear").Wants(t, 0, "the file holds the master key and is not encrypted")
	before := allRows(t, db.Dsn)

	db.Kill()
	s.store.Kill()
	s.store.Restart() // empty
	if err := os.RemoveAll(s.admin.Settings["data_dir"]); err != nil {
		t.Fatal(err)
	}
	fresh := rig.NewDatabase(t)
	into := settings{"database.url": fresh.Dsn, "data_dir": rig.DataDir(t)}
	restore := func(name string, more ...string) rig.Result {
		return rig.Command(t, into, append([]string{"restore", filepath.Join(dir, name)}, more...)...)
	}
	wrong := filepath.Join(dir, "wrong")
	rig.SaveText(t, wrong, "another passphrase\n")
	restore("at-rest", "--passphrase-file", wrong).Wants(t, 1, "the passphrase is wrong")
	damaged(t, filepath.Join(dir, "in-clear"), filepath.Join(dir, "damaged"))
	restore("damaged").Wants(t, 1, "damaged")
	if rows := allRows(t, fresh.Dsn); len(rows) != 0 {
		t.Fatalf("a failed restore left %d tables", len(rows))
	}
	restore("at-rest", "--passphrase-file", phrase).Wants(t, 0, "start the admin now")
	restore("at-rest", "--passphrase-file", phrase).Wants(t, 1, "the database is not empty")
	after := allRows(t, fresh.Dsn)
	if len(after) != len(before) {
		t.Errorf("%d tables, want %d", len(after), len(before))
	}
	for table, rows := range before {
		if after[table] != rows {
			t.Errorf("table %s was\n%s\nis\n%s", table, rows, after[table])
		}
	}

	maps.Copy(s.admin.Settings, into)
	s.admin.StartReady()
	if now := s.admin.AdminKey(); now != adminKey {
		t.Error("the admin's key is another one")
	}
	if now := s.admin.CLI("export").Wants(t, 0).Stdout; now != exported {
		t.Errorf("export was\n%s\nis\n%s", exported, now)
	}
	certs := rig.Call(t, http.MethodGet, s.admin.Admin+"/api/gateway/certs?keys=true", nil, "Authorization", splitToken)
	if !strings.Contains(certs.Body, "PRIVATE KEY") {
		t.Errorf("the private key: %s", certs)
	}
	s.gateways[0].StartReady()
	s.everywhere("the key", path, key, status(200))
	s.everywhere("the revoked key", path, revoked, refused("auth_unknown"))
}

// damaged copies a file with one byte changed in its middle.
func damaged(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		content[len(content)/2] ^= 0xff
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The private database of `up` is backed up while it runs, and restored to a directory
// that does not exist.
func TestAPrivateDatabaseIsBackedUpAndRestored(t *testing.T) {
	t.Parallel()
	another := rig.DataDir(t) // goes after the server that ends in it
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	origin := "http://" + testenv.Origin(t, rig.Echo)
	s.Rest().Do("POST", "/api/apis", rig.APIDef("calm", origin, false))
	key := s.Rest().NewKey(object{"access_rights": rig.AccessTo("calm")})
	s.AwaitUse("/calm/x", key)
	file := filepath.Join(t.TempDir(), "backup")
	s.CLI("backup", file, "--without-keys").Wants(t, 0, "the file has no master key")
	if content, err := os.ReadFile(file); err != nil || bytes.Contains(content, []byte(s.ReadState("master.key"))) {
		t.Errorf("the backup without keys: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.CLI("backup", file).Wants(t, 0, "admin.key gateway.secret gateway.token master.key")
	s.CLI("restore", file).Wants(t, 4) // the server runs
	kept := []string{s.ReadState("master.key"), s.ReadState("gateway.token"), s.ReadState("gateway.secret"), s.ReadState("admin.key")}
	if code := s.Stop(); code != 0 {
		t.Fatalf("the server ended with code %d", code)
	}
	s.CLI("restore", file).Wants(t, 1, "the database is not empty")

	s.Settings["data_dir"] = another
	s.CLI("backup", file+"2").Wants(t, 1, "there is no private database in")
	s.CLI("restore", file).Wants(t, 0, "start the admin now")
	s.StartReady()
	if now := []string{s.ReadState("master.key"), s.ReadState("gateway.token"), s.ReadState("gateway.secret"), s.ReadState("admin.key")}; fmt.Sprint(now) != fmt.Sprint(kept) {
		t.Error("files of data_dir are others")
	}
	if got := s.AwaitUse("/calm/x", key); got.Status != 200 {
		t.Errorf("the key: %s", got)
	}
	other := rig.DataDir(t)
	if err := os.MkdirAll(other, 0o711); err != nil {
		t.Fatal(err)
	}
	rig.SaveText(t, filepath.Join(other, "gateway.token"), "another-token-0123456789\n")
	rig.Command(t, settings{"data_dir": other}, "restore", file).Wants(t, 1, "gateway.token exists and differs")
}
