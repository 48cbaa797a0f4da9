package admin

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func TestAFreshGatewayIsServedWhileTheDatabaseIsAway(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	site := testenv.NewAuthority(t, "servers").Server("site.example")
	b.Call("POST", "/api/certs", b.editor, uploadOf(t, site.CertPEM, site.KeyPEM)).Want(201)
	b.createAPI(b.editor, "a", "/a")
	b.atRevision("2")
	wait.Until(t, "the admin has read what gateways need", func() bool {
		rows, _ := b.server.memory.certs()
		_, known := b.server.memory.user(rest.HashOf([]byte(b.robot)))
		return len(rows) == 1 && known && b.server.memory.firstOrg() != ""
	})
	allow := b.block()
	defer allow()
	for name, credential := range map[string]string{"the token of all gateways": gatewayToken, "a gateway's own key": b.robot} {
		if r := b.Call("GET", "/api/gateway/bundle?wait=0s", credential, "").Want(200); len(parseBundle(t, r.Body).APIs) != 1 {
			t.Errorf("%s: %s", name, r.Body)
		}
		if r := b.Call("GET", "/api/gateway/certs?keys=true", credential, "").Want(200); !strings.Contains(string(r.Body), "PRIVATE KEY") {
			t.Errorf("%s: certificates %s", name, r.Body)
		}
	}
	for name, credential := range map[string]string{"an unknown key": "sla_nobody-has-this-key", "an editor": b.editor} {
		r := b.Call("GET", "/api/gateway/bundle?wait=0s", credential, "").Want(503)
		if got := r.Header.Get(definition.AwayHeader); got != definition.AwayDatabase {
			t.Errorf("%s: the answer names %q as away", name, got)
		}
	}
	if r := b.Call("GET", "/readyz", "", ""); r.Status != 503 || !strings.Contains(string(r.Body), `"database":"unavailable"`) {
		t.Errorf("ready: %d %s", r.Status, r.Body)
	}
}

// A gateway whose access was ended is not remembered.
func TestAGatewayThatWasEndedIsForgotten(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	b.atRevision("1")
	known := func() bool {
		_, ok := b.server.memory.user(rest.HashOf([]byte(b.robot)))
		return ok
	}
	wait.Until(t, "the gateway is known", func() bool { b.server.rememberNow(t.Context()); return known() })
	id := b.Text("select id from users where role = 'gateway'")
	b.Call("DELETE", "/api/users/"+id, b.admin, "").Want(200)
	b.server.rememberNow(t.Context())
	if known() {
		t.Error("the gateway is still known")
	}
	b.Call("GET", "/api/gateway/bundle?wait=0s", b.robot, "").Want(401)
}
