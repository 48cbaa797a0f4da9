package admin

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

// problems returns the problems of a refusal by their paths.
func problems(r *admintest.Answer) map[string]rest.Problem {
	var answer rest.Envelope
	r.Into(&answer)
	byPath := make(map[string]rest.Problem)
	for _, p := range answer.Problems {
		byPath[p.Path] = p
	}
	return byPath
}

func TestRefusalsSayWhereProblemsAre(t *testing.T) {
	b := start(t)
	const body = "{\n \"name\":\"x\",\n \"use_keyless\":true,\n \"proxy\":{\"listen_path\":\"x\",\n  \"target_url\":\"ftp://up.example\"}}"
	for _, call := range []struct{ method, path string }{{"POST", "/api/apis"}, {"POST", "/api/apis/validate"}} {
		got := problems(b.Call(call.method, call.path, b.editor, body).Want(400))
		if p := got["proxy.target_url"]; p.Line != 5 || p.Column != 3 || p.Message == "" || strings.HasPrefix(p.Message, "proxy") {
			t.Errorf("%s: %+v", call.path, got)
		}
		if p := got["proxy.listen_path"]; p.Line != 4 || p.Column != 11 {
			t.Errorf("%s: %+v", call.path, got)
		}
	}
	for path, wanted := range map[string]struct{ body, at string }{
		"/api/policies":     {`{"name":"x","access_rights":{"none":{"api_id":"none"}}}`, `access_rights["none"]`},
		"/api/config/apply": {`{"apis":[{"api_id":"a","proxy":{"listen_path":"/a","target_url":"nothing"}}]}`, `apis["a"].proxy.target_url`},
	} {
		if got := problems(b.Call("POST", path, b.editor, wanted.body).Want(400)); got[wanted.at].Line != 1 || got[wanted.at].Column < 2 {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if p := problems(b.Call("POST", "/api/apis", b.editor, "{\n \"name\": }").Want(400))[""]; p.Line != 2 || p.Column != 10 {
		t.Errorf("text that is no JSON: %+v", p)
	}
	schema := `{"name":"g","use_keyless":true,"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { a: None }"},"proxy":{"listen_path":"/g/","target_url":"http://up.example"}}`
	if got := problems(b.Call("POST", "/api/apis", b.editor, schema).Want(400)); got["graphql.schema"].Line != 1 {
		t.Errorf("a schema with problems: %+v", got)
	}
}
