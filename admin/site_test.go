package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

// beside serves the portal's own listener, and returns a client of it.
func (b *bench) beside() *admintest.Client {
	b.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.server.ServePortal(ln) }()
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(b.server.apart.ShutdownWithContext(ctx), <-served); err != nil {
			b.t.Error(err)
		}
	})
	return b.At("http://" + ln.Addr().String())
}

// page opens a page, and checks its status and where it leads.
func (b *bench) page(url string, status int, to string) {
	b.t.Helper()
	resp, err := b.HTTP.Get(url)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != status || resp.Header.Get("Location") != to {
		b.t.Errorf("%s: %d, to %q", url, resp.StatusCode, resp.Header.Get("Location"))
	}
}

// The portal's own listener has what developers and visitors need, and the admin has no
// page of the portal then.
func TestThePortalsListenerServesNothingElse(t *testing.T) {
	b := start(t, func(d *Deps) { d.Portal.Apart, d.Portal.PublicURL = true, "https://dev.example.com/portal" })
	b.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	apart := b.beside()
	b.page(apart.URL+"/portal/", 200, "")
	b.page(apart.URL+"/", 307, "/portal/")
	b.page(b.URL+"/portal/apis/x", 307, "https://dev.example.com/portal/")
	apart.Call("GET", "/api/portal/public/catalogue", "", "").Want(200)
	apart.Call("GET", "/api/portal/me", "", "").Want(401)
	apart.Call("POST", "/oauth/token", "", "").Want(400)
	for _, at := range []*admintest.Client{apart, b.Client} { // streams post to either
		at.Call("POST", portal.EventsPath, "", "").Want(400).Says("webhook-id: must be")
		at.Call("POST", portal.EventsPath+"/", "", "").Want(400).Says("webhook-id: must be")
		at.Call("GET", portal.EventsPath, "", "").Want(405)
	}
	for _, path := range []string{"/api/apis", "/api/keys", "/api/users/me", "/api/openapi.json", "/metrics", "/healthz", "/readyz", "/api/gateway/bundle", "/api/portal/developers", "/api/portal/mailbox"} {
		for _, key := range []string{"", b.admin, gatewayToken} {
			if r := apart.Call("GET", path, key, ""); r.Status != 404 {
				t.Errorf("%s: %d", path, r.Status)
			}
		}
	}
	// What operators may do elsewhere they may not here.
	apart.Call("POST", "/api/portal/requests", b.admin, `{"for_plan":"x"}`).Want(403)
	apart.Call("GET", "/api/portal/webhooks/events", b.admin, "").Want(403)
	b.Call("GET", "/api/portal/webhooks/events", b.admin, "").Want(200)
}
