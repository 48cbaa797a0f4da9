package admin

import (
	"strings"
	"testing"
)

// No answer of the REST is one that a browser shows as a page, whatever was sent: it is JSON
// or text or a picture, and its kind is not guessed.
func TestNoAnswerIsAPage(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords = passwords() })
	const attack = `"><script>alert(1)</script>`
	names := strings.NewReplacer("{id}", "%3Cscript%3Ealert(1)", "{n}", "1", "{key}", "%3Cscript%3E", "{api}", "%3Cscript%3E", "{client}", "%3Cscript%3E", "{name}", "%3Cscript%3E", "{path}", "%3Cscript%3E")
	for _, r := range b.server.routes() {
		if r.Waits || r.Path == "/api/session" && r.Method == "DELETE" {
			continue
		}
		path := names.Replace(r.Path) + "?q=%3Cscript%3Ealert(1)%3C/script%3E&sort=%3Cscript%3E"
		body := ""
		if r.Body != nil {
			body = `{"name":"` + strings.ReplaceAll(attack, `"`, `\"`) + `","` + strings.ReplaceAll(attack, `"`, `\"`) + `":1}`
		}
		got := b.Call(r.Method, path, b.viewer, body)
		kind := got.Header.Get("Content-Type")
		switch {
		case !strings.HasPrefix(kind, "application/json") && !strings.HasPrefix(kind, "application/openapi") && !strings.HasPrefix(kind, "text/plain") && len(got.Body) > 0:
			t.Errorf("%s: %q: %.200s", r.Name(), kind, got.Body)
		case got.Header.Get("X-Content-Type-Options") != "nosniff":
			t.Errorf("%s: X-Content-Type-Options is %q", r.Name(), got.Header.Get("X-Content-Type-Options"))
		}
	}
}
