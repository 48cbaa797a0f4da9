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
// encrypted in the database. The authority validates at the first one, whichever has begun
// the order. What cannot be used or ends soon is ordered anew; a restart orders nothing, also
// without the admin.
func TestGatewaysShareCertificatesByACME(t *testing.T) {
	shared := settings{"gateway.token": splitToken, "valkey.url": "redis://" + testenv.Valkey(t).Addr, "log.format": "json"}
	dsn := testenv.Postgres(t)
	admin := rig.NewAdmin(t, rig.Merge(shared, settings{"database.url": dsn})).StartReady()
	var last *sharing
	for _, challenge := range []string{"http-01", "tls-alpn-01"} {
		last = newSharing(t, admin, shared, challenge)
	}
	wantSealed(t, dsn)
	admin.Stop()
	last.one.Stop()
	last.one.Start()
	last.shows("after a restart without the admin")
	if strings.Contains(last.one.Run.Stderr.String(), "ordering a certificate") {
		t.Errorf("the restart ordered certificates:\n%s", &last.one.Run.Stderr)
	}
}

// A sharing is two gateways with the same certificates.
type sharing struct {
	one   *rig.Server
	first string            // where the first one speaks TLS
	sums  map[string]string // fingerprints by domain
}

// newSharing starts two gateways that prove by one kind of challenge that they answer for two
// domains.
func newSharing(t *testing.T, admin *rig.Server, shared settings, challenge string) *sharing {
	t.Helper()
	s := &sharing{first: rig.FreeAddress(t), sums: make(map[string]string)}
	second := rig.FreeAddress(t)
	gateway := func(tlsAddress string) *rig.Server {
		return rig.NewGateway(t, rig.Merge(shared, settings{
			"gateway.admin_url": admin.Admin, "gateway.tls.listen": tlsAddress, "gateway.acme.accept_terms": "true",
			"gateway.acme.domains": "a.example.com,b.example.com", "gateway.acme.challenges": challenge,
		}))
	}
	two := gateway(second)
	s.one = gateway(s.first)
	authority := testenv.NewACME(t, filepath.Join(rig.ModuleRoot(), "internal", "tools"), testenv.ACMEPorts{
		Listen: rig.FreeAddress(t), Management: rig.FreeAddress(t), TLS: s.first, HTTP: strings.TrimPrefix(s.one.Traffic, "http://"),
	})
	for _, g := range []*rig.Server{s.one, two} {
		g.Settings["gateway.acme.directory"], g.Settings["gateway.acme.ca"] = authority.Directory, authority.CA
	}
	sum := sha256.Sum256([]byte(authority.Directory))
	entry := admin.Admin + "/api/gateway/acme/" + hex.EncodeToString(sum[:8]) + ".certificate."
	old := testenv.NewAuthority(t, "former").ServerUntil(time.Now().Add(time.Hour), "a.example.com")
	for name, value := range map[string]string{"a.example.com": old.CertPEM + old.KeyPEM, "b.example.com": "junk"} {
		if got := rig.Call(t, "PUT", entry+name, certs.ACMEEntry{Value: []byte(value)}, "Authorization", "Bearer "+splitToken); got.Status != 200 {
			t.Fatal(got)
		}
	}
	s.one.Start()
	two.Start()
	for _, name := range []string{"a.example.com", "b.example.com"} {
		two.Await("the certificate of "+name, func() (err error) { s.sums[name], err = servedFor(second, name); return err })
	}
	s.shows("at the other gateway")
	if n := strings.Count(s.one.Run.Stderr.String()+two.Run.Stderr.String(), "a certificate was issued by ACME"); n != 2 {
		t.Errorf("%d certificates were ordered for 2 domains", n)
	}
	var list struct {
		Certificates []struct {
			Domain   string
			Failures int
		}
	}
	admin.Rest().Do("GET", "/api/acme", nil).Into(t, &list)
	for _, c := range list.Certificates {
		if s.sums[c.Domain] == "" || c.Failures != 0 {
			t.Errorf("the admin lists %v", c)
		}
	}
	if len(list.Certificates) < 2 {
		t.Errorf("the admin lists %d certificates", len(list.Certificates))
	}
	return s
}

// shows waits until the first gateway shows the certificates.
func (s *sharing) shows(what string) {
	for name, sum := range s.sums {
		s.one.Await("the shared certificate of "+name+" "+what, func() error {
			got, err := servedFor(s.first, name)
			if err == nil && got != sum {
				err = errors.New(got)
			}
			return err
		})
	}
}

// wantSealed fails t unless the entries of accounts and certificates are encrypted.
func wantSealed(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var entries, clear int
	err = conn.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE position('PRIVATE KEY'::bytea IN sealed_value) > 0) FROM acme_entries`).Scan(&entries, &clear)
	if err != nil || entries < 3 || clear != 0 {
		t.Errorf("%d entries, %d in clear text, %v", entries, clear, err)
	}
}
