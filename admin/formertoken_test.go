package admin

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/secret"
)

// While the token of the gateways is changed both are accepted, and the log names the
// gateways that are not done yet.
func TestBothTokensAreAcceptedDuringARotation(t *testing.T) {
	const former = "former-token-of-the-gateways"
	b := start(t, func(d *Deps) { d.FormerGatewayToken = secret.New(former) })
	b.atRevision("0")
	for range 2 {
		b.Call("GET", "/api/gateway/bundle?wait=0s", former, "", "X-Sluice-Gateway", "edge-1").Want(200)
		b.Call("GET", "/api/gateway/bundle?wait=0s", gatewayToken, "", "X-Sluice-Gateway", "edge-2").Want(200)
	}
	b.Call("GET", "/api/gateway/bundle?wait=0s", former+"x", "").Want(401)
	b.Call("GET", "/api/apis", former, "").Want(b.Call("GET", "/api/apis", gatewayToken, "").Status)
	said := b.log.String()
	if strings.Count(said, "still uses gateway.former_token") != 1 || !strings.Contains(said, "gateway=edge-1") || strings.Contains(said, former) {
		t.Errorf("the log says %s", said)
	}
	plain := start(t)
	plain.Call("GET", "/api/gateway/bundle?wait=0s", former, "").Want(401)
	plain.Call("GET", "/api/gateway/bundle?wait=0s", "", "").Want(401)
}
