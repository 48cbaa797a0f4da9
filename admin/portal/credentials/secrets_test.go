package credentials_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

func TestWithoutAMasterKeyNothingSecretIsKept(t *testing.T) {
	b := start(t, func(d *admin.Deps) { d.MasterKey = secret.Key{} })
	dev := b.developer("ada")
	body := fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2","jwt_secret":%q}`, dev, strings.Repeat("s", 40))
	b.Call("POST", "/api/portal/requests", b.approver, body).Want(503).Says("jwt_secret", "admin.master_key is not set")
	id := b.request(dev, "gold")
	b.Call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").Want(503).Says("admin.master_key is not set")
	if b.trace(id) || b.Count("select count(*) from keys") != 0 {
		t.Error("a key whose letter cannot be kept was issued")
	}
	b.configure(`"require_key_approval":true,"mail_options":{"email_copy":{"key_email":{"enabled":true,"hide_token_data":true}}}`)
	b.approve(id)
}

func TestAKeyCanBeACertificate(t *testing.T) {
	b := start(t)
	mine := testenv.NewAuthority(t, "authority").Client("ada")
	ask := func(dev, text string) *admintest.Answer {
		quoted, _ := json.Marshal(text)
		return b.Call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2","certificate":%s}`, dev, quoted))
	}
	ada, bob := b.developer("ada"), b.developer("bob")
	ask(ada, mine.CertPEM+mine.KeyPEM).Want(400).Says("certificate: must be without its private key")
	ask(ada, mine.KeyPEM).Want(400).Says("certificate: must be")
	id := ask(ada, mine.CertPEM).Want(200).Text("Message")
	b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200).Says("BEGIN CERTIFICATE")
	key := b.approve(id)
	s := b.session(key)
	if s.Extra == nil || s.Extra.Certificate != key || !strings.HasPrefix(key, b.org) || len(key) != len(b.org)+64 {
		t.Errorf("key %q, session %+v", key, s.Extra)
	}
	// Nobody takes another's certificate, and with it the key.
	taken := ask(bob, key).Want(200).Text("Message")
	b.Call("PUT", "/api/portal/requests/approve/"+taken, b.approver, "").Want(409).Says("There is a key of that name already")
	if b.trace(taken) || b.Text("select developer_id from developer_keys where key_hash = $1", hashOf(key)) != ada {
		t.Error("the key changed hands")
	}
}
