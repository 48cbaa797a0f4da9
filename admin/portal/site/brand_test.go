package site_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"
)

func TestTheBrandIsShown(t *testing.T) {
	b := start(t)
	var logo bytes.Buffer
	if err := png.Encode(&logo, image.NewRGBA(image.Rect(0, 0, 40, 20))); err != nil {
		t.Fatal(err)
	}
	put := func(body, key string) int { return b.Call("PUT", "/api/portal/brand", key, body).Status }
	body := fmt.Sprintf(`{"name":"Acme developers","accent":"#7a1fa2","accent_dark":"#d9a6f5","welcome":"Hello **you**","footer":"Acme Ltd","links":[{"text":"Terms","url":"https://acme.example/terms"}],"logo":%q}`,
		base64.StdEncoding.EncodeToString(logo.Bytes()))
	b.Call("PUT", "/api/portal/brand", b.admin, body).Want(200)
	w := b.browser()
	w.open("/portal/").want(200, "/portal/").says("Acme developers", "Hello you", "Acme Ltd", "Terms")
	for _, link := range append(all(w.page, "link"), all(w.page, "img")...) {
		to := attr(link, "href") + attr(link, "src")
		if page := b.browser().open(to); page.status != 200 || strings.Contains(to, "brand.css") && !strings.Contains(string(page.body), "#7a1fa2") {
			t.Errorf("%s: %d %s", to, page.status, page.body)
		}
	}
	if !strings.Contains(string(w.body), "/portal/brand/logo?v=") || !strings.Contains(string(w.body), "/portal/brand.css?v=") {
		t.Errorf("%s", w.body)
	}

	// Without the member the logo stays; empty, it goes.
	b.Call("PUT", "/api/portal/brand", b.admin, `{"name":"Acme"}`).Want(200)
	if id := b.Call("GET", "/api/portal/brand", b.admin, "").Want(200).Text("logo_id"); id == "" {
		t.Error("the logo is gone")
	}
	b.Call("PUT", "/api/portal/brand", b.admin, `{"name":"Acme","logo":""}`).Want(200)
	b.browser().open("/portal/").says("Acme").hides("/brand/logo", "brand.css")
	b.browser().open("/portal/brand/logo").want(404, "/portal/brand/logo")

	b.Call("PUT", "/api/portal/brand", b.admin, `{"accent":"#ffff00","accent_dark":"#000000","links":[{"text":"x","url":"javascript:alert(1)"}]}`).Want(400).
		Says("accent: #ffff00 has a contrast of", "the nearest that has it is #", "accent_dark: #000000", "links[0]: url must begin with")
	viewer := b.Call("POST", "/api/users", b.admin, `{"email_address":"v@example.com","role":"viewer"}`).Want(200).Text("access_key")
	if status := put(`{"name":"x"}`, viewer); status != 403 {
		t.Errorf("a viewer changes the brand: %d", status)
	}
	b.Call("PUT", "/api/portal/brand", b.admin, fmt.Sprintf(`{"name":%q,"welcome":%q,"footer":%q,"links":[{"text":%q,"url":"/x"}]}`, attack[:60], attack, attack, attack[:60])).Want(200)
	b.browser().open("/portal/").want(200, "/portal/")
	b.Call("PUT", "/api/portal/brand", b.admin, `{"name":"x"}`, "If-Match", `"1"`).Want(409)
}
