package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

func uploadOf(t *testing.T, pem ...string) string {
	t.Helper()
	body, err := json.Marshal(certificateUpload{PEM: strings.Join(pem, "")})
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
	id := b.Call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM)).Want(201).Says(`"Message":"Certificate added"`, `"has_private":false`).Text("ID")
	again := b.Call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM, one.KeyPEM)).Want(200).Says(`"has_private":true`, `"may_serve":true`)
	if again.Text("ID") != id || strings.Contains(string(again.Body), "PRIVATE KEY") {
		t.Errorf("added with its key: %s", again.Body)
	}
	b.Call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM)).Want(200) // the key stays
	caID := b.Call("POST", "/api/certs", b.editor, uploadOf(t, ca)).Want(201).Text("ID")
	list := b.Call("GET", "/api/certs", b.viewer, "").Want(200).Says(id, caID, `"dns_names":["one.example"]`, `"is_ca":true,"may_serve":false`)
	if strings.Contains(string(list.Body), "BEGIN") {
		t.Errorf("the list shows %s", list.Body)
	}
	b.Call("GET", "/api/certs/"+id, b.viewer, "").Want(200).Says(`"id":"`+id+`"`, `"has_private":true`, `"issuer":"CN=a"`)
	b.Call("GET", "/api/certs", b.other, "").Want(200).Says(`"certificates":[]`)
	b.Call("GET", "/api/certs/"+id, b.other, "").Want(404)
	b.Call("DELETE", "/api/certs/"+id, b.other, "").Want(404)
	b.Call("GET", "/api/audit?object_kind=certificate", b.admin, "").Want(200).Says(id, `"action":"created"`)

	whole := b.Call("GET", "/api/gateway/certs?keys=true", gatewayToken, "").Want(200)
	var all certs.Delivery
	if err := json.Unmarshal(whole.Body, &all); err != nil || len(all.Certificates) != 2 {
		t.Fatalf("delivered %s, %v", whole.Body, err)
	}
	for i := range all.Certificates {
		c, err := all.Certificates[i].Parse()
		if err != nil || (c.Key != nil) != (all.Certificates[i].ID == id) {
			t.Errorf("%s: %v, key %t", all.Certificates[i].ID, err, c != nil && c.Key != nil)
		}
	}
	bare := b.Call("GET", "/api/gateway/certs", gatewayToken, "").Want(200).Says(`"keys_held":1`)
	if strings.Contains(string(bare.Body), "PRIVATE KEY") || bare.Header.Get("ETag") == whole.Header.Get("ETag") {
		t.Errorf("without keys: %s with ETag %s", bare.Body, bare.Header.Get("ETag"))
	}
	b.Call("GET", "/api/gateway/certs?keys=true", gatewayToken, "", "If-None-Match", whole.Header.Get("ETag")).Want(304)
	b.Call("GET", "/api/gateway/certs?keys=true", b.admin, "").Want(403)

	b.Call("DELETE", "/api/certs/"+id, b.editor, "").Want(200)
	b.Call("DELETE", "/api/certs/"+id, b.editor, "").Want(404).Says("Certificate does not exist")
	b.Call("GET", "/api/gateway/certs?keys=true", gatewayToken, "", "If-None-Match", whole.Header.Get("ETag")).Want(200)
}

func TestAChangeOfCertificatesIsANewBundleForGateways(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	b.createAPI(b.editor, "one", "/one")
	first := b.Call("GET", "/api/gateway/bundle?wait=5s", gatewayToken, "").Want(200).Header.Get("ETag")
	b.Call("POST", "/api/certs", b.editor, uploadOf(t, testenv.NewAuthority(t, "a").PEM())).Want(201)
	next := b.Call("GET", "/api/gateway/bundle?wait=30s", gatewayToken, "", "If-None-Match", first).Want(200).Header.Get("ETag")
	if next == first {
		t.Error("the bundle is the one that it was")
	}
}

func TestWhatIsNoCertificateIsRefused(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	authority := testenv.NewAuthority(t, "a")
	one, two := authority.Server("one.example"), authority.Server("two.example")
	b.Call("POST", "/api/certs", b.editor, uploadOf(t, "junk")).Want(400).Says("pem: holds no certificate")
	b.Call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM, two.KeyPEM)).Want(400).Says("does not belong")
	b.Call("POST", "/api/certs", b.editor, `{"cert":"x"}`).Want(400).Says("unknown member")
	b.Call("GET", "/api/certs/none", b.editor, "").Want(404)
}

func TestAnotherMasterKeyIsSaidAndNothingIsDelivered(t *testing.T) {
	key := secret.NewKey()
	b := start(t, func(d *Deps) { d.MasterKey = key })
	one := testenv.NewAuthority(t, "a").Server("one.example")
	b.Call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM, one.KeyPEM)).Want(201)
	b.server.deps.MasterKey = secret.NewKey()
	b.Call("GET", "/api/gateway/certs?keys=true", gatewayToken, "").Want(500)
	if !strings.Contains(b.log.String(), "admin.master_key") || strings.Contains(b.log.String(), key.Text().Reveal()) {
		t.Errorf("the log says %s", b.log)
	}
	b.Call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM)).Want(200)
	b.Call("GET", "/api/gateway/certs?keys=true", gatewayToken, "").Want(500)
	b.Call("POST", "/api/certs", b.editor, uploadOf(t, one.CertPEM, one.KeyPEM)).Want(200)
	b.Call("GET", "/api/gateway/certs?keys=true", gatewayToken, "").Want(200).Says("PRIVATE KEY")
}

func TestDefinitionsNameNoFilesOfGateways(t *testing.T) {
	b := start(t)
	mutual := func(entry string) string {
		return fmt.Sprintf(`{"api_id":"m","name":"m","use_keyless":true,"use_mutual_tls_auth":true,"client_certificates":[%q],"proxy":{"listen_path":"/m/","target_url":"http://up.example"}}`, entry)
	}
	for _, file := range []string{"/etc/passwd", "./ca.pem", "ca.pem"} {
		for _, path := range []string{"/api/apis", "/api/apis/validate"} {
			b.Call("POST", path, b.editor, mutual(file)).Want(400).Says("client_certificates[0]: names a file of the gateway", "POST /api/certs")
		}
		b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+mutual(file)+`]}`).Want(400).Says("client_certificates[0]: names a file of the gateway")
	}
	b.Call("POST", "/api/apis", b.editor, mutual("default"+strings.Repeat("0a", 32))).Want(200)
}
