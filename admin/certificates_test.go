package admin

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/certs"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

func uploadOf(t *testing.T, pem ...string) string {
	t.Helper()
	body, err := json.Marshal(certs.Upload{PEM: strings.Join(pem, "")})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestCertificatesLiveTheirLifeWithTheirKeysSealed(t *testing.T) {
	key := secret.NewKey()
	b := start(t, func(d *Deps) { d.MasterKey = key })
	authority := testenv.NewAuthority(t, "a")
	one, ca := authority.Server("one.example"), authority.PEM()
	id := b.call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM)).want(200).says(`"Message":"Certificate added"`, `"has_private":false`).text("ID")
	again := b.call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM, one.KeyPEM)).want(200).says(`"has_private":true`)
	if again.text("ID") != id || strings.Contains(string(again.body), "PRIVATE KEY") {
		t.Errorf("added with its key: %s", again.body)
	}
	b.call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM)).want(200) // the key stays
	caID := b.call("POST", "/api/certs", b.editor, uploadOf(t, ca)).want(200).text("ID")
	list := b.call("GET", "/api/certs", b.viewer, "").want(200).says(id, caID, `"dns_names":["one.example"]`, `"is_ca":true`)
	if strings.Contains(string(list.body), "BEGIN") {
		t.Errorf("the list shows %s", list.body)
	}
	b.call("GET", "/api/certs/"+id, b.viewer, "").want(200).says(`"id":"`+id+`"`, `"has_private":true`, `"issuer":"CN=a"`)
	b.call("GET", "/api/certs", b.other, "").want(200).says(`"certificates":[]`)
	b.call("GET", "/api/certs/"+id, b.other, "").want(404)
	b.call("DELETE", "/api/certs/"+id, b.other, "").want(404)
	b.call("GET", "/api/audit?object_kind=certificate", b.admin, "").want(200).says(id, `"action":"created"`)

	whole := b.call("GET", "/api/gateway/certs?keys=true", gatewayToken, "").want(200)
	var all certs.Delivery
	if err := json.Unmarshal(whole.body, &all); err != nil || len(all.Certificates) != 2 {
		t.Fatalf("delivered %s, %v", whole.body, err)
	}
	for i := range all.Certificates {
		c, err := all.Certificates[i].Parse()
		if err != nil || (c.Key != nil) != (all.Certificates[i].ID == id) {
			t.Errorf("%s: %v, key %t", all.Certificates[i].ID, err, c != nil && c.Key != nil)
		}
	}
	bare := b.call("GET", "/api/gateway/certs", gatewayToken, "").want(200).says(`"keys_held":1`)
	if strings.Contains(string(bare.body), "PRIVATE KEY") || bare.header.Get("ETag") == whole.header.Get("ETag") {
		t.Errorf("without keys: %s with ETag %s", bare.body, bare.header.Get("ETag"))
	}
	b.call("GET", "/api/gateway/certs?keys=true", gatewayToken, "", "If-None-Match", whole.header.Get("ETag")).want(304)
	b.call("GET", "/api/gateway/certs?keys=true", b.admin, "").want(403)

	b.call("DELETE", "/api/certs/"+id, b.editor, "").want(200)
	b.call("DELETE", "/api/certs/"+id, b.editor, "").want(404).says("Certificate does not exist")
	b.call("GET", "/api/gateway/certs?keys=true", gatewayToken, "", "If-None-Match", whole.header.Get("ETag")).want(200)
}

func TestAChangeOfCertificatesIsANewBundleForGateways(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	b.createAPI(b.editor, "one", "/one")
	first := b.call("GET", "/api/gateway/bundle?wait=5s", gatewayToken, "").want(200).header.Get("ETag")
	b.call("POST", "/api/certs", b.editor, uploadOf(t, testenv.NewAuthority(t, "a").PEM())).want(200)
	next := b.call("GET", "/api/gateway/bundle?wait=30s", gatewayToken, "", "If-None-Match", first).want(200).header.Get("ETag")
	if next == first {
		t.Error("the bundle is the one that it was")
	}
}

func TestWhatIsNoCertificateIsRefused(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	authority := testenv.NewAuthority(t, "a")
	one, two := authority.Server("one.example"), authority.Server("two.example")
	b.call("POST", "/api/certs", b.editor, uploadOf(t, "junk")).want(400).says("pem: holds no certificate")
	b.call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM, two.KeyPEM)).want(400).says("does not belong")
	b.call("POST", "/api/certs", b.editor, `{"cert":"x"}`).want(400).says("unknown member")
	b.call("GET", "/api/certs/none", b.editor, "").want(404)
}

func TestAnotherMasterKeyIsSaidAndNothingIsDelivered(t *testing.T) {
	key := secret.NewKey()
	b := start(t, func(d *Deps) { d.MasterKey = key })
	one := testenv.NewAuthority(t, "a").Server("one.example")
	b.call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM, one.KeyPEM)).want(200)
	b.server.certs = certs.New(b.server.deps.Store, secret.NewKey())
	b.call("GET", "/api/gateway/certs?keys=true", gatewayToken, "").want(500)
	if !strings.Contains(b.log.String(), "admin.master_key") || strings.Contains(b.log.String(), key.Text().Reveal()) {
		t.Errorf("the log says %s", b.log)
	}
	b.call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM)).want(200)
	b.call("GET", "/api/gateway/certs?keys=true", gatewayToken, "").want(500)
	b.call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM, one.KeyPEM)).want(200)
	b.call("GET", "/api/gateway/certs?keys=true", gatewayToken, "").want(200).says("PRIVATE KEY")
}
