package system

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// Upstreams get secrets that definitions refer to: new ones at once, and the last good ones
// while one is missing. Nothing shows them.
func TestUpstreamsGetTheSecretsThatDefinitionsReferTo(t *testing.T) {
	t.Parallel()
	files, state := t.TempDir(), rig.DataDir(t)
	rig.SaveText(t, filepath.Join(files, "token"), rig.Plant("file-one-0123456789")+"\n")
	s := newSplit(t, 0, testenv.Postgres(t))
	target := "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		ctx.SetBodyString(fmt.Sprintf("%x", ctx.Request.Header.Peek("X-Key"))) // not as it is: the output of gateways is searched for it
	})
	gateway := func() *rig.Server {
		return rig.NewGateway(t, settings{
			"data_dir": state, "gateway.admin_url": s.admin.Admin, "gateway.token": splitToken, "gateway.secret_files": files, "secret": splitSecret,
			"valkey.url": "redis://:" + splitPassword + "@" + s.store.Addr, "valkey.timeout": "5s",
		})
	}
	g := gateway().StartReady()
	sends := func(want string) {
		t.Helper()
		g.Await("the upstream to get its secret", func() error {
			got, err := rig.Send("GET", g.Traffic+"/orders/", nil)
			if err == nil {
				err = rig.Lacks(got.Body, fmt.Sprintf("%x", want))
			}
			return err
		})
	}
	def := rig.APIDef("orders", target, true)
	set := func(header string) {
		def["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{"name": "Default", "global_headers": object{"X-Key": header}}}}
		s.rest.Do("PUT", "/api/apis/orders", def)
	}
	s.rest.Do("POST", "/api/apis", def)
	command := func(input string, args ...string) rig.Result {
		t.Helper()
		path := filepath.Join(t.TempDir(), "value")
		rig.SaveText(t, path, input)
		if input != "" {
			args = append(args, "--file", path)
		}
		return s.admin.CLI(append([]string{"secret"}, args...)...)
	}
	command(rig.Plant("sealed-one-0123456789")+"\n", "set", "orders").Wants(t, 0, "secret orders is set")
	set("Key {secret:orders}")
	sends("Key sealed-one-0123456789")
	command(rig.Plant("sealed-two-0123456789"), "set", "orders").Wants(t, 0)
	sends("Key sealed-two-0123456789")
	if said := command("", "list").Wants(t, 0, "orders").Stdout; strings.Contains(said, "sealed-") {
		t.Errorf("the list has %s", said)
	}
	command("", "delete", "orders", "--yes").Wants(t, 6, "APIs refer to this secret; change them first: orders")
	for _, ask := range []struct {
		url  string
		body object
	}{{g.Control + "/svc/apis/orders", nil}, {g.Control + "/svc/explain", object{"method": "GET", "url": "/orders/"}}} {
		method := http.MethodGet
		if ask.body != nil {
			method = http.MethodPost
		}
		got, err := rig.Send(method, ask.url, ask.body, "X-Svc-Authorization", splitSecret)
		if err != nil || got.Status != 200 || strings.Contains(got.Body, "sealed-") {
			t.Errorf("%s: %s, %v", ask.url, got, err)
		}
	}
	told := s.rest.Expect(200, "POST", "/api/explain", object{"method": "GET", "url": "/orders/"}, `"allowed":true`)
	if strings.Contains(told.Body, "sealed-") {
		t.Errorf("the admin explains by %s", told.Body)
	}

	set("{file:" + files + "/token}")
	sends("file-one-0123456789")
	rig.SaveText(t, filepath.Join(files, "token"), rig.Plant("file-two-0123456789"))
	sends("file-two-0123456789")
	set("{env:SLUICE_SECRET_NOT_SET}")
	s.admin.Await("the gateway to report what is missing", func() error {
		got, err := s.rest.Try("GET", "/api/gateways", nil)
		if err == nil {
			err = rig.Lacks(got.Body, "{env:SLUICE_SECRET_NOT_SET}: is not set in the environment of the gateway")
		}
		return err
	})
	sends("file-two-0123456789")

	// A restart without the admin serves what was last good, from an encrypted copy.
	copied := filepath.Join(state, "last-good.sealed")
	before, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	set("{secret:orders}")
	sends("sealed-two-0123456789")
	rig.Eventually(t, "the copy on disk", func() error { // is written after the change is in force
		text, err := os.ReadFile(copied)
		switch {
		case err == nil && strings.Contains(string(text), "sealed-two"):
			t.Fatal("the copy is not encrypted")
		case err == nil && bytes.Equal(text, before):
			err = errors.New("it is the one before")
		}
		return err
	})
	g.Stop()
	s.admin.Kill()
	g = gateway().StartReady()
	sends("sealed-two-0123456789")
	g.Stop()
}
