package system

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// servedFor returns the fingerprint of the certificate that a gateway shows for a name, which
// pebble has issued.
func servedFor(address, name string) (string, error) {
	conn, err := tls.Dial("tcp", address, &tls.Config{ServerName: name, InsecureSkipVerify: true}) // pebble's root is made at its start
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	leaf := conn.ConnectionState().PeerCertificates[0]
	if err := leaf.VerifyHostname(name); err != nil {
		return "", err
	}
	if !strings.HasPrefix(leaf.Issuer.CommonName, "Pebble") {
		return "", fmt.Errorf("%s is issued by %s", name, leaf.Issuer)
	}
	return certs.SumOf(leaf.Raw), nil
}

// Two gateways share the certificates that one of them orders, by either challenge, and
// encrypted in the database. What cannot be used or ends soon is ordered anew; a restart
// orders nothing, also without the admin.
func TestGatewaysShareCertificatesByACME(t *testing.T) {
	first, second := rig.FreeAddress(t), rig.FreeAddress(t)
	shared := settings{"gateway.token": splitToken, "valkey.url": "redis://" + testenv.Valkey(t).Addr, "log.format": "json"}
	dsn := testenv.Postgres(t)
	admin := rig.NewAdmin(t, rig.Merge(shared, settings{"database.url": dsn})).StartReady()

	gateway := func(tlsAddress string, more settings) *rig.Server {
		return rig.NewGateway(t, rig.Merge(shared, settings{"gateway.admin_url": admin.Admin, "gateway.tls.listen": tlsAddress, "gateway.acme.accept_terms": "true"}, more))
	}
	// The authority validates at the first gateway alone.
	one := gateway(first, nil)
	authority := testenv.NewACME(t, filepath.Join(rig.ModuleRoot(), "internal", "tools"), testenv.ACMEPorts{
		Listen: rig.FreeAddress(t), Management: rig.FreeAddress(t), TLS: first, HTTP: strings.TrimPrefix(one.Traffic, "http://"),
	})
	acme := settings{"gateway.acme.directory": authority.Directory, "gateway.acme.ca": authority.CA, "gateway.acme.domains": "a.example.com,b.example.com", "gateway.acme.challenges": "http-01"}
	for key, value := range acme {
		one.Settings[key] = value
	}
	two := gateway(second, rig.Merge(acme, settings{"gateway.acme.challenges": "tls-alpn-01"}))

	sum := sha256.Sum256([]byte(authority.Directory))
	entry := admin.Admin + "/api/gateway/acme/" + hex.EncodeToString(sum[:8]) + ".certificate."
	old := testenv.NewAuthority(t, "former").ServerUntil(time.Now().Add(time.Hour), "a.example.com")
	for name, value := range map[string]string{"a.example.com": old.CertPEM + old.KeyPEM, "b.example.com": "junk"} {
		got := rig.Call(t, "PUT", entry+name, certs.ACMEEntry{Value: []byte(value)}, "Authorization", "Bearer "+splitToken)
		if got.Status != 200 {
			t.Fatal(got)
		}
	}

	one.Start()
	two.Start()
	sums := make(map[string]string)
	for _, name := range []string{"a.example.com", "b.example.com"} {
		two.Await("the certificate of "+name, func() (err error) { sums[name], err = servedFor(second, name); return err })
	}
	shows := func(what string) {
		t.Helper()
		for name, sum := range sums {
			one.Await("the shared certificate of "+name+" "+what, func() error {
				got, err := servedFor(first, name)
				if err == nil && got != sum {
					err = errors.New(got)
				}
				return err
			})
		}
	}
	shows("at the other gateway")
	issued := func() int {
		return strings.Count(one.Run.Stderr.String()+two.Run.Stderr.String(), "a certificate was issued by ACME")
	}
	if n := issued(); n != 2 {
		t.Errorf("%d certificates were ordered for 2 domains", n)
	}

	var list struct {
		Certificates []struct {
			Domain   string
			Failures int
		}
	}
	admin.Rest().Do("GET", "/api/acme", nil).Into(t, &list)
	if got := fmt.Sprint(list.Certificates); got != "[{a.example.com 0} {b.example.com 0}]" {
		t.Errorf("the admin lists %s", got)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var entries, clear int
	if err := conn.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE position('PRIVATE KEY'::bytea IN sealed_value) > 0) FROM acme_entries`).Scan(&entries, &clear); err != nil || entries != 3 || clear != 0 {
		t.Errorf("%d entries, want an account and two certificates; %d in clear text, %v", entries, clear, err)
	}

	admin.Stop()
	one.Stop()
	one.Start()
	shows("after a restart without the admin")
	if n := issued(); n != 0 && !strings.Contains(two.Run.Stderr.String(), "a certificate was issued") || strings.Contains(one.Run.Stderr.String(), "ordering a certificate") {
		t.Errorf("the restart ordered certificates:\n%s", &one.Run.Stderr)
	}
}
