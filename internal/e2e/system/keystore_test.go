package system

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	credentials "github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
)

// scrape waits until the metrics of a server have a line.
func scrape(s *rig.Server, line string) {
	s.T.Helper()
	s.Await(line, func() error {
		got, err := rig.Send("GET", s.Telemetry+"/metrics", nil)
		if err == nil && !strings.Contains(got.Body, line+"\n") {
			err = errors.New("not among the metrics")
		}
		return err
	})
}

// readiness waits until /readyz of a server has a status and a text.
func readiness(s *rig.Server, status int, text string) {
	s.T.Helper()
	s.Await(fmt.Sprintf("%d %q of /readyz", status, text), func() error {
		got, err := rig.Send("GET", s.Telemetry+"/readyz", nil)
		if err == nil && (got.Status != status || !strings.Contains(got.Body, text)) {
			err = fmt.Errorf("%s", got)
		}
		return err
	})
}

// revoke deletes a key, and expects that the answer says in how many gateways that is in
// force, and which others there are.
func (s *split) revoke(key string, inForce, gateways int, missing ...string) {
	s.t.Helper()
	var done struct {
		Meta struct {
			InForce  int `json:"in_force"`
			Gateways int
			Missing  []string
		}
	}
	s.rest.Do("DELETE", "/api/keys/"+key, nil).Into(s.t, &done)
	if m := done.Meta; m.InForce != inForce || m.Gateways != gateways || len(m.Missing) != len(missing) {
		s.t.Errorf("deleted: %+v, want %d of %d and without %q", done.Meta, inForce, gateways, missing)
	}
}

// at expects an answer of a gateway at once.
func (s *split) at(g *rig.Server, path, key string, said func(rig.Answer) error) {
	s.t.Helper()
	if err := said(rig.Call(s.t, "GET", g.Traffic+path, nil, "Authorization", key)); err != nil {
		s.t.Errorf("%s: %v", g.Traffic, err)
	}
}

// listed waits until the admin knows all gateways.
func (s *split) listed() {
	s.t.Helper()
	rig.Eventually(s.t, "the list of gateways", func() error {
		var list struct{ Gateways []struct{ Name string } }
		s.rest.Do("GET", "/api/gateways", nil).Into(s.t, &list)
		if len(list.Gateways) != len(s.gateways) {
			return fmt.Errorf("%+v", list)
		}
		return nil
	})
}

func (s *split) restart(with settings) {
	s.t.Helper()
	for _, g := range s.gateways {
		g.Stop()
		maps.Copy(g.Settings, with)
		g.StartReady()
	}
}

// While the key store is away, keys in memory and others work, and what happens to keys
// at the admin takes effect at once. Keys that nobody can decide on are refused only
// once the admin is away as well.
func TestKeysWithoutTheirStore(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 2, testenv.Postgres(t))
	s.restart(settings{"keys.cache_ttl": "100ms", "keys.stale_ttl": "0s", "keys.negative_ttl": "1m"})
	path, seen := s.governed("calm", 1_000_000)
	grant := object{"apply_policies": []string{"calm"}}
	own := object{"access_rights": rig.AccessTo("calm")}
	doomed, changed, unseen := s.rest.NewKey(grant), s.rest.NewKey(own), s.rest.NewKey(grant)
	for _, key := range []string{seen, doomed, changed} {
		s.everywhere("a key", path, key, status(200))
	}
	s.listed()
	for _, one := range append(s.gateways, s.admin) {
		scrape(one, `sluice_store_up{store="keys"} 1`)
	}

	s.store.Kill()
	for _, one := range append(s.gateways, s.admin) {
		scrape(one, `sluice_store_up{store="keys"} 0`)
	}
	for _, g := range s.gateways {
		readiness(g, 200, "others are asked of the admin")
		s.at(g, path, seen, status(200))
		s.at(g, path, unseen, status(200))
		s.at(g, path, credentials.Generate(credentials.DefaultPrefix), refused("auth_unknown"))
	}
	made := s.rest.NewKey(grant)
	s.everywhere("a key made meanwhile", path, made, status(200))
	s.rest.Do("PUT", "/api/keys/"+changed, object{"is_inactive": true, "access_rights": rig.AccessTo("calm")})
	s.revoke(doomed, 2, 2)
	for _, g := range s.gateways {
		s.at(g, path, doomed, refused("auth_unknown"))
	}

	s.admin.Kill()
	first, second := s.gateways[0], s.gateways[1]
	for _, key := range []string{seen, unseen, made} {
		s.at(first, path, key, status(200))
	}
	rig.Eventually(t, "a refusal of what nobody can decide on", func() error {
		return refused("key_store_unavailable")(rig.Call(t, "GET", first.Traffic+path, nil, "Authorization", credentials.Generate(credentials.DefaultPrefix)))
	})
	s.at(first, path, doomed, refused("auth_unknown"))
	second.Kill()
	second.Start()
	readiness(second, 503, "no key is in memory")

	s.admin.StartReady()
	readiness(second, 200, "others are asked of the admin")
	for _, key := range []string{seen, unseen, made} {
		s.everywhere("a key once the admin is back", path, key, status(200))
	}
	s.everywhere("a key that was changed", path, changed, refused("auth_inactive"))
	s.store.Restart()
	for _, one := range append(s.gateways, s.admin) {
		scrape(one, `sluice_store_up{store="keys"} 1`)
	}
	for range 20 {
		for _, g := range s.gateways {
			s.at(g, path, seen, status(200))
			s.at(g, path, doomed, refused("auth_unknown"))
		}
	}
}

// An answer to a revocation names the gateways in which it is not in force.
func TestARevocationSaysWhereItIsInForce(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 2, testenv.Postgres(t))
	path, key := s.governed("calm", 1_000_000)
	other := s.rest.NewKey(object{"apply_policies": []string{"calm"}})
	s.everywhere("the key", path, key, status(200))
	s.listed()
	s.revoke(key, 2, 2)
	for _, g := range s.gateways {
		s.at(g, path, key, refused("auth_unknown"))
	}
	s.gateways[1].Signal(syscall.SIGSTOP)
	defer s.gateways[1].Signal(syscall.SIGCONT)
	done := s.admin.CLI("key", "revoke", other, "--yes")
	done.Wants(t, 0, "in force on 1 of 2 gateways; missing: ")
}

// copyOf returns a copy of a database, to which nobody must be connected.
func copyOf(t *testing.T, dsn string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn+" dbname=postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	name := dsn[strings.LastIndex(dsn, "dbname=")+len("dbname="):]
	if _, err := conn.Exec(t.Context(), "create database "+name+"_copy template "+name); err != nil {
		t.Fatal(err)
	}
	return dsn + "_copy"
}

// After the database was restored, the key store has the keys of the backup and no
// others, and used quotas stay.
func TestTheKeyStoreFollowsARestoredDatabase(t *testing.T) {
	t.Parallel()
	database := testenv.Postgres(t)
	s := newSplit(t, 1, database)
	path, kept := s.governed("calm", 100)
	grant := object{"apply_policies": []string{"calm"}}
	lost := s.rest.NewKey(grant)
	remaining := func(want string) func(rig.Answer) error {
		return func(got rig.Answer) error {
			if left := got.Header.Get("X-RateLimit-Remaining"); got.Status != 200 || left != want {
				return fmt.Errorf("%s, remaining %s, want 200 and %s", got, left, want)
			}
			return nil
		}
	}
	s.everywhere("the first key", path, kept, remaining("99"))
	s.admin.Stop()
	backup := copyOf(t, database)
	s.admin.StartReady()
	made := s.rest.NewKey(grant)
	s.everywhere("the key made after the backup", path, made, status(200))
	s.rest.Do("DELETE", "/api/keys/"+lost, nil)
	s.everywhere("the key deleted after the backup", path, lost, refused("auth_unknown"))

	s.admin.Stop()
	s.admin.Settings["database.url"] = backup
	s.admin.StartReady()
	s.everywhere("no key that the backup does not have", path, made, refused("auth_unknown"))
	s.everywhere("the key that the backup has", path, lost, status(200))
	s.everywhere("the quota that was used", path, kept, remaining("98"))
	s.admin.AwaitLog("the key store holds what the database has")

	sync := func(words ...string) {
		t.Helper()
		s.admin.CLI("keys", "sync").Wants(t, 0, words...)
	}
	sync("0 keys written, 0 deleted")
	v := intruder(t, s)
	if err := v.Put(t.Context(), strings.Repeat("0", 64), &definition.Session{Alias: "foreign"}); err != nil {
		t.Fatal(err)
	}
	hasher := credentials.Hasher{Prefix: credentials.DefaultPrefix}
	if err := v.Delete(t.Context(), hasher.Hash(kept)); err != nil {
		t.Fatal(err)
	}
	sync("1 key written, 1 deleted")
	s.everywhere("the quota that was used", path, kept, remaining("97"))
}

// intruder is a client that can write to the key store, without gateway.token.
func intruder(t *testing.T, s *split) *keystore.Valkey {
	t.Helper()
	v, err := keystore.OpenValkey(keystore.ValkeyOptions{Addresses: []string{s.store.Addr}, Password: splitPassword, Timeout: rig.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// A session that somebody else writes into the key store opens nothing, and one that an
// older release wrote goes on working.
func TestOnlyTheAdminWritesSessions(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 1, testenv.Postgres(t))
	path, key := s.governed("calm", 100)
	v, hasher := intruder(t, s), credentials.Hasher{Prefix: credentials.DefaultPrefix}
	forged := credentials.Generate(credentials.DefaultPrefix)
	session := &definition.Session{ApplyPolicies: []string{"calm"}}
	if err := v.Put(t.Context(), hasher.Hash(forged), session); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		s.at(s.gateways[0], path, forged, refused("auth_unknown"))
	}
	if err := v.Put(t.Context(), hasher.Hash(key), session); err != nil { // without a seal, as older releases do
		t.Fatal(err)
	}
	for range 5 {
		s.at(s.gateways[0], path, key, status(200))
	}
	// The admin may have written the session without a seal already, as the gateway asked.
	s.admin.CLI("keys", "sync").Wants(t, 0, "written, 1 deleted")
	s.admin.Stop()
	s.gateways[0].Stop()
	s.gateways[0].StartReady() // without the admin, from what it kept
	began := time.Now()
	s.at(s.gateways[0], path, key, status(200))
	t.Logf("without the admin after a restart: %s", time.Since(began))
}
