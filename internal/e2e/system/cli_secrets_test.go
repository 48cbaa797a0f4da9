package system

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

// TestAKilledChangeOfTheMasterKeyIsTakenUpAgain kills the change of a key that
// nobody configured, has the server read everything in between, and completes it.
func TestAKilledChangeOfTheMasterKeyIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	dir := rig.DataDir(t)
	tls := rig.FreeAddress(t)
	s := rig.NewUp(t, dir, settings{"gateway.tls.listen": tls}).StartReady()
	site := testenv.NewAuthority(t, "servers").Server("site.example")
	r := s.Rest()
	r.Do(http.MethodPost, "/api/certs", object{"pem": site.CertPEM + site.KeyPEM})
	const hooks = 20 // as many as an organisation may have
	for i := range hooks {
		r.Do(http.MethodPost, "/api/portal/webhooks", object{"name": fmt.Sprintf("h%d", i), "url": "https://example.com/", "events": []string{"*"}})
	}
	rotate := func() *rig.Process { return rig.NewProcess(t, settings{"data_dir": dir}, "secrets", "rotate") }
	refused := rotate()
	refused.Start()
	if code := refused.Wait(); code != 4 {
		t.Errorf("while the server runs: ended with code %d", code)
	}
	if code := s.Stop(); code != 0 {
		t.Fatalf("the server ended with code %d", code)
	}
	first := strings.TrimSpace(s.ReadState("master.key"))

	killed := rotate()
	killed.Start()
	rig.Eventually(t, "the next key to be on disk", func() error {
		_, err := os.Stat(filepath.Join(dir, "master.key.next"))
		return err
	})
	killed.Kill()

	s.StartReady() // with whatever was sealed by then
	if said := s.Run.Stdout.String() + s.Run.Stderr.String(); !strings.Contains(said, "run sluice secrets rotate") {
		t.Error("the server does not say that the change is incomplete")
	}
	if text := certificatesOf(s); !strings.Contains(text, "-----BEGIN PRIVATE KEY") {
		t.Errorf("in the middle gateways get %s", text)
	}
	if code := s.Stop(); code != 0 {
		t.Fatalf("the server ended with code %d", code)
	}
	rig.Command(t, settings{"data_dir": dir}, "secrets", "rotate").Wants(t, 0, "took the place of", "start the server again")
	if _, err := os.Stat(filepath.Join(dir, "master.key.next")); err == nil {
		t.Error("the next key is still there")
	}
	if now := strings.TrimSpace(s.ReadState("master.key")); now == first || len(now) != 64 {
		t.Error("the key is the one before")
	}
	s.StartReady()
	if text := certificatesOf(s); !strings.Contains(text, "-----BEGIN PRIVATE KEY") {
		t.Errorf("in the end gateways get %s", text)
	}
}

// certificatesOf is what a server's gateways get.
func certificatesOf(s *rig.Server) string {
	s.T.Helper()
	token := strings.TrimSpace(s.ReadState("gateway.token"))
	return rig.Call(s.T, http.MethodGet, s.Admin+"/api/gateway/certs?keys=true", nil, "Authorization", token).Body
}

// TestAConfiguredMasterKeyIsChanged changes the key of an admin that goes on with
// both of them.
func TestAConfiguredMasterKeyIsChanged(t *testing.T) {
	t.Parallel()
	db := rig.NewDatabase(t)
	former, next := secret.NewKey().Text().Reveal(), secret.NewKey().Text().Reveal()
	rig.Plant(former)
	rig.Plant(next)
	token := rig.Plant("gateway-token-of-this-test-0000")
	with := settings{"database.url": db.Dsn, "gateway.token": token, "valkey.url": "redis://" + testenv.Valkey(t).Addr}
	admin := func(keys settings) *rig.Server { return rig.NewAdmin(t, rig.Merge(with, keys)).StartReady() }
	certificates := func(s *rig.Server) string {
		return rig.Call(t, http.MethodGet, s.Admin+"/api/gateway/certs?keys=true", nil, "Authorization", token).Body
	}
	site := testenv.NewAuthority(t, "servers").Server("site.example")
	first := admin(settings{"admin.master_key": former})
	first.Rest().Do(http.MethodPost, "/api/certs", object{"pem": site.CertPEM + site.KeyPEM})
	first.Stop()

	both := settings{"admin.master_key": next, "admin.former_master_key": former}
	second := admin(both)
	if !strings.Contains(certificates(second), "-----BEGIN PRIVATE KEY") {
		t.Error("with both keys the admin cannot read what the former sealed")
	}
	rig.Command(t, settings{"database.url": db.Dsn, "admin.master_key": next}, "secrets", "rotate").Wants(t, 1, "admin.former_master_key")
	wrong := settings{"database.url": db.Dsn, "admin.master_key": next, "admin.former_master_key": secret.NewKey().Text().Reveal()}
	rig.Command(t, wrong, "secrets", "rotate").Wants(t, 1, "1 sealed values open with neither key", "certificates ")
	file := filepath.Join(t.TempDir(), "former")
	rig.SaveText(t, file, former+"\n")
	rig.Command(t, settings{"database.url": db.Dsn, "admin.master_key": next}, "secrets", "rotate", "--former-key-file", file, "--dry-run").Wants(t, 0, "1 value would be sealed anew")
	rig.Command(t, rig.Merge(both, settings{"database.url": db.Dsn}), "secrets", "rotate", "-o", "json").Wants(t, 0, `"table": "certificates", "sealed_anew": 1`)
	second.Stop()
	third := admin(settings{"admin.master_key": next})
	if !strings.Contains(certificates(third), "-----BEGIN PRIVATE KEY") {
		t.Error("the new key alone does not read it")
	}
	if n := sealedRows(t, db.Dsn); n != 1 {
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

// A second admin with another master key would seal what the first one cannot open: it is
// refused, whether its key is configured or generated.
func TestAnAdminWithAnotherMasterKeyIsRefused(t *testing.T) {
	t.Parallel()
	key, other := secret.NewKey().Text().Reveal(), secret.NewKey().Text().Reveal()
	with := settings{"database.url": testenv.Postgres(t), "valkey.url": "redis://" + testenv.Valkey(t).Addr}
	first := rig.NewAdmin(t, rig.Merge(with, settings{"admin.master_key": key})).StartReady()
	dir := rig.DataDir(t)
	with["data_dir"], with["admin.listen"] = dir, rig.FreeAddress(t)
	rig.Command(t, rig.Merge(with, settings{"admin.master_key": other}), "admin").
		Wants(t, 1, "admin.master_key: this is not the master key of the database", "set admin.master_key to the key that the other admins")
	rig.Command(t, with, "admin").Wants(t, 1, "no key is configured", "copy that file from one of them")
	if _, err := os.Stat(filepath.Join(dir, "master.key")); err == nil {
		t.Error("the refused admin left a key behind")
	}
	rig.SaveText(t, filepath.Join(dir, "master.key"), key+"\n")
	second := rig.NewAdmin(t, with)
	second.Settings["data_dir"] = dir // with the key of the first one
	second.StartReady()
	for _, admin := range []*rig.Server{first, second} {
		if code := admin.Stop(); code != 0 {
			t.Errorf("%s ended with code %d", admin, code)
		}
	}
}
