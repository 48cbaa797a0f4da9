package requests_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestWithoutAMasterKeyNothingSecretIsKept(t *testing.T) {
	b := start(t, func(d *admin.Deps) { d.MasterKey = secret.Key{} })
	dev := b.developer("ada")
	body := fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2","jwt_secret":%q}`, dev, strings.Repeat("s", 40))
	b.call("POST", "/api/portal/requests", b.approver, body).want(503).says("jwt_secret", "admin.master_key is not set")
	id := b.request(dev, "gold")
	b.call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").want(503).says("admin.master_key is not set")
	if b.trace(id) || b.count("select count(*) from keys") != 0 {
		t.Error("a key whose letter cannot be kept was issued")
	}
	b.configure(`"require_key_approval":true,"mail_options":{"email_copy":{"key_email":{"enabled":true,"hide_token_data":true}}}`)
	b.approve(id)
}

func TestAKeyCanBeACertificate(t *testing.T) {
	b := start(t)
	mine := testenv.NewAuthority(t, "authority").Client("ada")
	ask := func(dev, text string) *answer {
		quoted, _ := json.Marshal(text)
		return b.call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2","certificate":%s}`, dev, quoted))
	}
	ada, bob := b.developer("ada"), b.developer("bob")
	ask(ada, mine.CertPEM+mine.KeyPEM).want(400).says("certificate: must be without its private key")
	ask(ada, mine.KeyPEM).want(400).says("certificate: must be")
	id := ask(ada, mine.CertPEM).want(200).text("Message")
	b.call("GET", "/api/portal/requests/"+id, b.viewer, "").want(200).says("BEGIN CERTIFICATE")
	key := b.approve(id)
	s := b.session(key)
	if s.Extra == nil || s.Extra.Certificate != key || !strings.HasPrefix(key, b.org) || len(key) != len(b.org)+64 {
		t.Errorf("key %q, session %+v", key, s.Extra)
	}
	// Nobody takes another's certificate, and with it the key.
	taken := ask(bob, key).want(200).text("Message")
	b.call("PUT", "/api/portal/requests/approve/"+taken, b.approver, "").want(409).says("There is a key of that name already")
	if b.trace(taken) || b.text("select developer_id from developer_keys where key_hash = $1", hashOf(key)) != ada {
		t.Error("the key changed hands")
	}
}
