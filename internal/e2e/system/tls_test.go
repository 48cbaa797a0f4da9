package system

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// An admin and a gateway that trust one authority alone: each address speaks TLS, the gateway
// and commands authenticate by certificates, and nothing is allowed to be insecure.
func TestAdminAndGatewayOverTLS(t *testing.T) {
	dir, authority := t.TempDir(), testenv.NewAuthority(t, "ours")
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	identity := func(name string, id *testenv.Identity) string { return file(name, id.CertPEM+id.KeyPEM) }
	ca, server, client := file("ca.pem", authority.PEM()), identity("server.pem", authority.Server("admin.example", "127.0.0.1")), identity("client.pem", authority.Client("gateway-1"))
	own, err := tls.LoadX509KeyPair(client, client)
	if err != nil {
		t.Fatal(err)
	}
	caller := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{own}},
	}}
	over := func(url string) string { return "https" + strings.TrimPrefix(url, "http") }

	portal := rig.FreeAddress(t)
	shared := settings{"gateway.token": splitToken, "valkey.url": "redis://" + testenv.Valkey(t).Addr, "log.format": "json"}
	admin := rig.NewAdmin(t, rig.Merge(shared, settings{
		"database.url": testenv.Postgres(t), "admin.tls.cert": server, "admin.tls.client_ca": ca, "portal.listen": portal, "portal.tls.cert": server,
		"admin.hsts": "1h", "portal.hsts": "2h",
	}))
	admin.Admin = over(admin.Admin)
	admin.Start()
	ready := func(s *rig.Server, url string) {
		s.Await("an answer 200 from "+url, func() error {
			got, err := rig.SendBy(caller, "GET", url+"/readyz", nil)
			if err == nil && got.Status != 200 {
				err = errors.New(got.String())
			}
			return err
		})
	}
	ready(admin, admin.Admin)
	gateway := rig.NewGateway(t, rig.Merge(shared, settings{
		"gateway.admin_url": admin.Admin, "gateway.admin_ca": ca, "gateway.admin_cert": client, "telemetry.tls.cert": server,
	}))
	gateway.Start()
	ready(gateway, over(gateway.Telemetry))

	key := admin.AdminKey()
	api := rig.APIDef("secure", "http://"+testenv.Origin(t, rig.Echo), true)
	api["use_keyless"] = true
	if got, err := rig.SendBy(caller, "POST", admin.Admin+"/api/apis", api, "Authorization", key); err != nil || got.Status != 200 {
		t.Fatal(err, got)
	}
	gateway.Await("the API", func() error {
		got, err := rig.Send("GET", gateway.Traffic+"/secure/", nil)
		if err == nil && got.Status != 200 {
			err = errors.New(got.String())
		}
		return err
	})
	portalURL := "https://" + portal + "/portal/"
	if got, err := rig.SendBy(caller, "GET", portalURL, nil); err != nil || got.Status != 200 || !strings.Contains(admin.Run.Stdout.String(), portalURL) {
		t.Errorf("the portal: %d, %v\n%s", got.Status, err, &admin.Run.Stdout)
	}

	for address, want := range map[string]string{strings.TrimPrefix(admin.Admin, "https://"): "max-age=3600", portal: "max-age=7200"} {
		transport := caller.Transport.(*http.Transport).Clone()
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
		got, err := rig.SendBy(&http.Client{Timeout: time.Minute, Transport: transport}, "GET", "https://admin.example/", nil)
		if err != nil || got.Header.Get("Strict-Transport-Security") != want {
			t.Errorf("the named host at %s: %v, %v, want %s", address, got, err, want)
		}
	}

	trusted := []string{"--server", admin.Admin, "--token", key, "--ca", ca, "--client-cert", client}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{append([]string{"api", "ls"}, trusted...), 0, "secure"},
		{append([]string{"api", "ls"}, trusted[:6]...), 7, "certificate required"},
		{append([]string{"api", "ls"}, trusted[:4]...), 7, "certificate signed by unknown authority"},
	} {
		rig.Command(t, settings{}, c.args...).Wants(t, c.code, c.says)
	}
	// On the admin's machine, commands trust its certificate whatever names it has.
	here := settings{"data_dir": admin.Settings["data_dir"], "admin.listen": admin.Settings["admin.listen"], "admin.tls.cert": server}
	rig.Command(t, here, "api", "ls", "--client-cert", client).Wants(t, 0, "secure")
	examined := rig.Command(t, settings{}, append([]string{"doctor"}, trusted...)...) // its code depends on the machine
	examined.Wants(t, examined.Code, admin.Admin+" is ready, and so is its database")
}
