package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// fakePlayer answers calls of the playground with what it is asked.
type fakePlayer struct {
	answer PlayedAnswer
	err    error
	calls  []*PlayedCall
}

func (f *fakePlayer) Play(_ context.Context, call *PlayedCall) (*PlayedAnswer, error) {
	f.calls = append(f.calls, call)
	answer := f.answer
	return &answer, f.err
}

// described returns the description of the last call.
func (f *fakePlayer) described(t *testing.T) (d map[string]any) {
	t.Helper()
	if len(f.calls) == 0 {
		t.Fatal("no call was made")
	}
	if err := json.Unmarshal(f.calls[len(f.calls)-1].Description, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCallsOfThePlayground(t *testing.T) {
	p := &fakePlayer{answer: PlayedAnswer{
		Sent: true, Status: 403, Headers: []PlayedHeader{{"X-A", "1"}, {"X-A", "2"}}, Body: []byte("nö"), RequestID: "4bf9",
		Took: 1500 * time.Microsecond, Report: json.RawMessage(`{"steps":[]}`),
	}}
	b := start(t, func(d *Deps) { d.Play = p })
	b.createAPI(b.editor, "a", "/a/")
	key := b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"a":{"api_id":"a"}}}`).Want(200).Text("key_hash")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"gold","name":"gold","access_rights":{"a":{"api_id":"a"}}}`).Want(200)

	r := b.Call("POST", "/api/apis/a/playground", b.editor, `{"as":{"key_hash":"`+key+`"},"count":true,"path":"/x?y=1","headers":{"X-Y":"z"},"body":"{}"}`).Want(200)
	r.Says(`"sent":true`, `"status":403`, `{"name":"X-A","value":"2"}`, `"body":"nö"`, `"request_id":"4bf9"`, `"took_ms":1.5`, `"counted":true`, `"explanation":{"steps":[]}`)
	d := p.described(t)
	if got, want := fmt.Sprint(d["key_hash"], d["method"], d["url"], d["body"], d["policy"], d["headers"]), fmt.Sprint(key, "POST", "/a/x?y=1", "{}", nil, map[string]any{"X-Y": "z", "Content-Type": "application/json"}); got != want {
		t.Errorf("described as %s, want %s", got, want)
	}
	if call := p.calls[0]; !call.Counted || call.API != "a" {
		t.Errorf("%+v", call)
	}
	b.Call("POST", "/api/apis/a/playground", b.editor, `{"as":{"policy":"gold"},"method":"DELETE"}`).Want(200).Says(`"counted":false`)
	if d := p.described(t); d["policy"] != "gold" || d["method"] != "DELETE" || d["url"] != "/a/" {
		t.Errorf("described as %v", d)
	}
	b.Call("POST", "/api/apis/a/playground", b.viewer, `{"as":{"me":true}}`).Want(200)
	audit := b.Call("GET", "/api/audit", b.admin, "").Want(200)
	audit.Says(`"played"`, key, `"gold"`, `"after":{"api_id":"a","counted":true`)
	if n := strings.Count(string(audit.Body), `"played"`); n != 2 {
		t.Errorf("%d entries of the audit log, want those for the key and the policy", n)
	}
	if strings.Contains(string(audit.Body), "y=1") {
		t.Error("the audit log has the query")
	}
}

func TestAnswersOfThePlaygroundThatAreNoText(t *testing.T) {
	p := &fakePlayer{answer: PlayedAnswer{Sent: true, Status: 200, Body: []byte("\xff\x00")}}
	b := start(t, func(d *Deps) { d.Play = p })
	b.createAPI(b.editor, "a", "/a/")
	b.Call("POST", "/api/apis/a/playground", b.viewer, `{}`).Want(200).Says(`"body":""`, `"body_base64":"/wA="`, `"headers":[]`)
	p.answer.Body, p.answer.Cut = []byte("n\xc3"), true
	b.Call("POST", "/api/apis/a/playground", b.viewer, `{}`).Want(200).Says(`"body":"n"`, `"cut":true`)
}

func TestFaultyCallsOfThePlayground(t *testing.T) {
	p := &fakePlayer{err: &definition.Problems{{Path: "method", Message: "must be one word"}}}
	b := start(t, func(d *Deps) { d.Play = p })
	b.createAPI(b.editor, "a", "/a/")
	b.createAPI(b.editor, "param", "/p/{id}/")
	for _, c := range []struct {
		who, api, body string
		status         int
		says           string
	}{
		{b.viewer, "a", `{"as":{"key_hash":"x"}}`, 403, "role editor"},
		{b.viewer, "a", `{"as":{"policy":"x"}}`, 403, "role editor"},
		{b.editor, "a", `{"as":{"key_hash":"x"}}`, 404, "as.key_hash"},
		{b.editor, "a", `{"as":{"policy":"x"}}`, 404, "as.policy"},
		{b.editor, "a", `{"as":{"policy":"x","me":true}}`, 400, "as: must have one of"},
		{b.editor, "a", `{"as":"me"}`, 400, "as must not be a JSON string"},
		{b.editor, "a", `{"path":"x"}`, 400, "path: must begin with a slash"},
		{b.editor, "a", `{"headers":{"upgrade":"websocket"}}`, 400, "headers.upgrade: "},
		{b.editor, "a", `{"body":"` + strings.Repeat("x", maxPlayBody+1) + `"}`, 400, "body: must have at most"},
		{b.editor, "a", `{"later":1}`, 400, "unknown member"},
		{b.editor, "a", `{"method":"A B"}`, 400, "method: must be one word"},
		{b.editor, "none", `{}`, 404, "Could not retrieve"},
		{b.other, "a", `{}`, 404, "Could not retrieve"},
		{b.editor, "param", `{}`, 400, "parameters"},
		{b.robot, "a", `{}`, 403, ""},
	} {
		b.Call("POST", "/api/apis/"+c.api+"/playground", c.who, c.body).Want(c.status).Says(c.says)
	}
	p.err = context.DeadlineExceeded
	b.Call("POST", "/api/apis/a/playground", b.viewer, `{}`).Want(504).Says("did not answer within 10s")
	b = start(t)
	b.createAPI(b.editor, "a", "/a/")
	b.Call("POST", "/api/apis/a/playground", b.viewer, `{}`).Want(404).Says("no playground")
}

func TestAddressesAreProbed(t *testing.T) {
	b, u := start(t, here), newGraphUpstream(t)
	probe := func(address string) string {
		return fmt.Sprintf(`{"url":%q,"headers":{"X-Admin":"s3cret"}}`, address)
	}
	b.Call("POST", "/api/apis/probe", b.editor, probe(u.url)).Want(200).Says(`"kind":"graphql"`, `"status":200`, "type Country")
	if len(u.seen) == 0 || u.seen[0] != "s3cret" {
		t.Errorf("headers %q", u.seen)
	}
	u.answer(200, `{"errors":[{"message":"introspection is disabled"}]}`)
	b.Call("POST", "/api/apis/probe", b.editor, probe(u.url)).Want(200).Says(`"kind":"graphql"`, `"error":"introspection is switched off`)

	answers := map[string]string{
		"/json": `{"openapi":"3.1.0","info":{"title":"Orders","version":"1"},"paths":{}}`,
		"/yaml": "openapi: 3.0.3\ninfo:\n  title: Orders\n  version: '1'\npaths: {}\n",
		"/old":  `{"swagger":"2.0","info":{"title":"Orders","version":"1"},"paths":{}}`,
		"/text": "hello", "/long": strings.Repeat(" ", 4<<20+1),
	}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch text, known := answers[r.URL.Path]; {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, u.url, http.StatusFound)
		case !known:
			w.WriteHeader(http.StatusNotFound)
		case r.Method != "GET":
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			_, _ = io.WriteString(w, text)
		}
	}))
	defer served.Close()
	for path, says := range map[string][]string{
		"/json": {`"kind":"openapi"`, `"name":"Orders"`, `"document":"{\"openapi\"`}, "/yaml": {`"kind":"openapi"`, `"name":"Orders"`, `"document":"openapi: 3.0.3`},
		"/old": {`"kind":"openapi"`}, "/text": {`"kind":"plain"`, `"status":200`}, "/none": {`"kind":"plain"`, `"status":404`},
		"/long": {`"kind":"plain"`, "larger than 4 MiB"}, "/moved": {`"kind":"plain"`, `"status":302`},
	} {
		b.Call("POST", "/api/apis/probe", b.editor, probe(served.URL+path)).Want(200).Says(says...)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	b.Call("POST", "/api/apis/probe", b.editor, probe(gone.URL)).Want(200).Says(`"kind":"plain"`, `"status":0`, `"error":"no connection`)
	for body, says := range map[string]string{
		probe("file:///etc/passwd"): "url: must be an address", probe("http://"): "url: must", probe("http://u:p@up.example/"): "credentials",
		`{"url":"http://up.example","headers":{"A B":"c"}}`: "headers.A B", `{"url":"http://up.example","headers":{"A":"b\r\nc"}}`: "headers.A",
		probe("http://169.254.169.254/latest/"): "never called", `{}`: "url: must", `{"uri":1}`: "unknown member",
	} {
		b.Call("POST", "/api/apis/probe", b.editor, body).Want(400).Says(says)
	}
	b.Call("POST", "/api/apis/probe", b.viewer, probe(u.url)).Want(403)
	if strings.Contains(b.log.String(), "s3cret") {
		t.Error("the log has the header")
	}
}

func TestPrivateAddressesAreNotProbedUnlessAllowed(t *testing.T) {
	b, u := start(t), newGraphUpstream(t)
	for _, address := range []string{u.url, strings.Replace(u.url, "127.0.0.1", "localhost", 1), strings.Replace(u.url, "127.0.0.1", "[::ffff:127.0.0.1]", 1)} {
		b.Call("POST", "/api/apis/probe", b.editor, fmt.Sprintf(`{"url":%q}`, address)).Want(400).Says("must not be called", "private_upstreams")
	}
	if len(u.seen) > 0 {
		t.Error("the upstream was called")
	}
}
