package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

// TestAKilledChangeOfTheMasterKeyIsTakenUpAgain kills the change of a key that
// nobody configured, has the server read everything in between, and completes it.
func TestAKilledChangeOfTheMasterKeyIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	tls := freeAddress(t)
	s := newUp(t, dir, settings{"gateway.tls.listen": tls}).startReady()
	site := testenv.NewAuthority(t, "servers").Server("site.example")
	r := s.rest()
	r.do(http.MethodPost, "/api/certs", object{"pem": site.CertPEM + site.KeyPEM})
	const hooks = 20 // as many as an organisation may have
	for i := range hooks {
		r.do(http.MethodPost, "/api/portal/webhooks", object{"name": fmt.Sprintf("h%d", i), "url": "https://example.com/", "events": []string{"*"}})
	}
	rotate := func() *process { return newProcess(t, settings{"data_dir": dir}, "secrets", "rotate") }
	refused := rotate()
	refused.start()
	if code := refused.wait(); code != 4 {
		t.Errorf("while the server runs: ended with code %d", code)
	}
	if code := s.stop(); code != 0 {
		t.Fatalf("the server ended with code %d", code)
	}
	first := strings.TrimSpace(s.readState("master.key"))

	killed := rotate()
	killed.start()
	eventually(t, "the next key to be on disk", func() error {
		_, err := os.Stat(filepath.Join(dir, "master.key.next"))
		return err
	})
	killed.kill()

	s.startReady() // with whatever was sealed by then
	if said := s.run.stdout.String() + s.run.stderr.String(); !strings.Contains(said, "run sluice secrets rotate") {
		t.Error("the server does not say that the change is incomplete")
	}
	if text := certificatesOf(s); !strings.Contains(text, "-----BEGIN PRIVATE KEY") {
		t.Errorf("in the middle gateways get %s", text)
	}
	if code := s.stop(); code != 0 {
		t.Fatalf("the server ended with code %d", code)
	}
	command(t, settings{"data_dir": dir}, "secrets", "rotate").wants(t, 0, "took the place of", "start the server again")
	if _, err := os.Stat(filepath.Join(dir, "master.key.next")); err == nil {
		t.Error("the next key is still there")
	}
	if now := strings.TrimSpace(s.readState("master.key")); now == first || len(now) != 64 {
		t.Error("the key is the one before")
	}
	s.startReady()
	if text := certificatesOf(s); !strings.Contains(text, "-----BEGIN PRIVATE KEY") {
		t.Errorf("in the end gateways get %s", text)
	}
}

// certificatesOf is what a server's gateways get.
func certificatesOf(s *server) string {
	s.t.Helper()
	token := strings.TrimSpace(s.readState("gateway.token"))
	return call(s.t, http.MethodGet, s.admin+"/api/gateway/certs?keys=true", nil, "Authorization", token).body
}

// TestAConfiguredMasterKeyIsChanged changes the key of an admin that goes on with
// both of them.
func TestAConfiguredMasterKeyIsChanged(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	former, next := secret.NewKey().Text().Reveal(), secret.NewKey().Text().Reveal()
	plant(former)
	plant(next)
	token := plant("gateway-token-of-this-test-0000")
	with := settings{"database.url": db.dsn, "gateway.token": token, "valkey.url": "redis://" + testenv.Valkey(t).Addr}
	admin := func(keys settings) *server { return newAdmin(t, merged(with, keys)).startReady() }
	certificates := func(s *server) string {
		return call(t, http.MethodGet, s.admin+"/api/gateway/certs?keys=true", nil, "Authorization", token).body
	}
	site := testenv.NewAuthority(t, "servers").Server("site.example")
	first := admin(settings{"admin.master_key": former})
	first.rest().do(http.MethodPost, "/api/certs", object{"pem": site.CertPEM + site.KeyPEM})
	first.stop()

	both := settings{"admin.master_key": next, "admin.former_master_key": former}
	second := admin(both)
	if !strings.Contains(certificates(second), "-----BEGIN PRIVATE KEY") {
		t.Error("with both keys the admin cannot read what the former sealed")
	}
	command(t, settings{"database.url": db.dsn, "admin.master_key": next}, "secrets", "rotate").wants(t, 1, "admin.former_master_key")
	wrong := settings{"database.url": db.dsn, "admin.master_key": next, "admin.former_master_key": secret.NewKey().Text().Reveal()}
	command(t, wrong, "secrets", "rotate").wants(t, 1, "1 sealed values open with neither key", "certificates ")
	file := filepath.Join(t.TempDir(), "former")
	saveText(t, file, former+"\n")
	command(t, settings{"database.url": db.dsn, "admin.master_key": next}, "secrets", "rotate", "--former-key-file", file, "--dry-run").wants(t, 0, "1 value would be sealed anew")
	command(t, merged(both, settings{"database.url": db.dsn}), "secrets", "rotate", "-o", "json").wants(t, 0, `"table": "certificates", "sealed_anew": 1`)
	second.stop()
	third := admin(settings{"admin.master_key": next})
	if !strings.Contains(certificates(third), "-----BEGIN PRIVATE KEY") {
		t.Error("the new key alone does not read it")
	}
	if n := sealedRows(t, db.dsn); n != 1 {
		t.Errorf("%d sealed rows", n)
	}
}

func sealedRows(t *testing.T, dsn string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM certificates WHERE octet_length(sealed_key) > 0").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
