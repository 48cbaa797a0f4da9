package site_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestPagesAndTheMenuOfThePortal(t *testing.T) {
	b := start(t)
	if got := b.Call("GET", "/api/portal/pages", b.admin, "").Want(200); !strings.Contains(string(got.Body), `"pages":[]`) {
		t.Errorf("%s", got.Body)
	}
	b.browser().open("/portal/pages/terms").want(404, "/portal/pages/terms").says("There is no such page")
	b.Call("POST", "/api/portal/pages", b.admin, `{"pages":[{"path":"terms","title":"Terms of use","body":"Be **kind**.\n\n# Details"},{"path":"soon","title":"Soon","body":"","hidden":true}]}`).Want(200)
	b.Call("POST", "/api/portal/pages", b.admin, `{"pages":[]}`).Want(409).Says("PUT replaces them")
	b.Call("POST", "/api/portal/menus", b.admin, `{"items":[{"text":"Terms","page":"terms"},{"text":"Soon","page":"soon"},{"text":"Gone","page":"gone"},{"text":"Status","url":"https://status.example.com/"}]}`).Want(200)

	w := b.browser()
	w.open("/portal/").want(200, "/portal/").says("Terms Status").hides("Soon", "Gone")
	w.follow("Terms").want(200, "/portal/pages/terms").says("Terms of use", "Be kind.")
	if current := all(w.page, "a"); len(current) > 0 {
		var marked strings.Builder
		for _, a := range current {
			if attr(a, "aria-current") == "page" {
				marked.WriteString(strings.TrimSpace(textOf(a)) + " ")
			}
		}
		if marked.String() != "Terms " {
			t.Errorf("the menu marks %q", marked.String())
		}
	}
	b.browser().open("/portal/pages/soon").want(404, "/portal/pages/soon")
	b.signUp("ada@example.com").open("/portal/pages/terms").want(200, "/portal/pages/terms").says("Terms of use")

	tag := b.Call("GET", "/api/portal/pages", b.admin, "").Want(200).Header.Get("ETag")
	b.Call("PUT", "/api/portal/pages", b.admin, `{"pages":[{"path":"terms","title":"New terms","body":"x"}]}`, "If-Match", tag).Want(200)
	b.Call("PUT", "/api/portal/pages", b.admin, `{"pages":[]}`, "If-Match", tag).Want(409)
	b.Call("PUT", "/api/portal/pages", b.admin, `{"id":"other","pages":[]}`).Want(400).Says("id: must be")
	w.open("/portal/pages/terms").says("New terms")
	if n := b.Count("select count(*) from audit_log where object_kind in ('portal_pages', 'portal_menus')"); n != 3 {
		t.Errorf("%d entries in the audit log", n)
	}
}

func TestFaultyPagesAndMenus(t *testing.T) {
	b := start(t)
	for body, says := range map[string]string{
		`{"pages":[{"path":"A b","title":"x"}]}`:                                                   "pages[0].path: must be 1 to 64 small letters",
		`{"pages":[{"path":"../x","title":"x"}]}`:                                                  "pages[0].path: must be",
		`{"pages":[{"path":"a","title":"x"},{"path":"a","title":"x"}]}`:                            "is there already",
		`{"pages":[{"path":"a","title":" "}]}`:                                                     "pages[0].title: must be printable text",
		fmt.Sprintf(`{"pages":[{"path":"a","title":"x","body":%q}]}`, strings.Repeat("x", 65<<10)): "pages[0].body: has 66560 bytes; at most 65536",
		`{"pages":[` + strings.Repeat(`{},`, 100) + `{}]}`:                                         "pages: are 101; at most 100",
		`{"page":[]}`: "unknown member",
	} {
		b.Call("PUT", "/api/portal/pages", b.admin, body).Want(400).Says(says)
	}
	for body, says := range map[string]string{
		`{"items":[{"text":"x"}]}`:                                            "items[0]: must have either page or url",
		`{"items":[{"text":"x","page":"a","url":"/b"}]}`:                      "items[0]: must have either page or url",
		`{"items":[{"text":"x","url":"javascript:alert(1)"}]}`:                "items[0]: url must begin with",
		`{"items":[{"text":"","page":"a"}]}`:                                  "items[0]: text must be",
		`{"items":[{"text":"x","page":"../a"}]}`:                              "items[0].page: must be the path of a page",
		`{"items":[` + strings.Repeat(`{"text":"x","url":"/"},`, 12) + `{}]}`: "items: are 13; at most 12",
	} {
		b.Call("PUT", "/api/portal/menus", b.admin, body).Want(400).Says(says)
	}
}

// Style sheets and scripts of an organisation's own are refused by name, with the reason.
func TestThePortalTakesNoStyleSheetsAndScripts(t *testing.T) {
	b := start(t)
	for _, path := range []string{"/api/portal/css", "/api/portal/js"} {
		for _, method := range []string{"GET", "POST", "PUT"} {
			b.Call(method, path, b.admin, "").Want(410).Says("in the origin where developers sign in", "PUT /api/portal/brand")
		}
	}
}

// Scripts in the texts of pages, menus and the brand come out as text: the browser of the
// tests refuses every page with something that would run.
func TestScriptsInPagesMenusAndTheBrandAreShownAsText(t *testing.T) {
	b := start(t)
	body := "# " + attack + "\n\n" + attack + "\n\n[link](javascript:alert(1)) [data](data:text/html,x) ![picture](https://evil.example/p.png) <svg onload=alert(1)> <a href=javascript:alert(1)>a</a>\n\n```\n" + attack + "\n```\n| a |\n|---|\n| " + attack + " |"
	b.Call("PUT", "/api/portal/pages", b.admin, fmt.Sprintf(`{"pages":[{"path":"terms","title":%q,"body":%q}]}`, attack[:60], body)).Want(200)
	b.Call("PUT", "/api/portal/menus", b.admin, fmt.Sprintf(`{"items":[{"text":%q,"page":"terms"},{"text":%q,"url":"https://example.com/?q=%%22%%3E%%3Cscript%%3E"}]}`, attack[:60], attack[:60])).Want(200)
	b.Call("PUT", "/api/portal/brand", b.admin, fmt.Sprintf(`{"name":%q,"welcome":%q,"footer":%q,"links":[{"text":%q,"url":"/x?%%22"}]}`, attack[:60], body, body, attack[:60])).Want(200)
	ada := b.signUp("ada@example.com")
	for _, page := range []string{"/portal/", "/portal/pages/terms", "/portal/pages/terms?x=%22%3E%3Cscript%3E", "/portal/account", "/portal/keys", "/portal/nothing-%3Cscript%3E"} {
		for _, w := range []*browser{b.browser(), ada} {
			w.open(page).hides("evil.example", `href="javascript:`, `href="data:`)
			if strings.HasPrefix(page, "/portal/pages/") {
				w.want(200, "/portal/pages/terms").says("<script>alert(1)</script>")
			}
		}
	}
	for _, to := range []string{"javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "data:text/html,x", "//evil.example", `/\\evil.example`} {
		b.Call("PUT", "/api/portal/menus", b.admin, fmt.Sprintf(`{"items":[{"text":"x","url":%q}]}`, to)).Want(400).Says("items[0]: url must")
	}
}
