package admin

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/openapi"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

// ofStreams makes a call with a document of streams.
func (b *bench) ofStreams(method, path, key, body string, headers ...string) *admintest.Answer {
	b.t.Helper()
	return b.Call(method, path, key, body, append([]string{"Content-Type", openapi.MediaType + "; charset=utf-8"}, headers...)...)
}

func TestStreamsRefuseWhatIsNoDocument(t *testing.T) {
	b := start(t)
	const path = "/api/apis/streams"
	b.Call("POST", path, "", "{", "Content-Type", "text/plain").Want(401)
	b.Call("POST", path, b.viewer, "{", "Content-Type", "text/plain").Want(403)
	for _, kind := range []string{"application/json", "application/yaml", "application/x-www-form-urlencoded", "application/vnd.svc.streams.oas+json"} {
		b.Call("POST", path, b.editor, "{}", "Content-Type", kind).Want(400).Says("The header Content-Type must be application/vnd.svc.streams.oas, not \\\"" + kind)
		b.Call("PUT", path+"/none", b.editor, "{}", "Content-Type", kind).Want(400).Says("application/vnd.svc.streams.oas")
	}
	for body, want := range map[string]string{
		"":        "it is empty",
		"{":       "line 1, column",
		"a: [":    "neither JSON nor YAML",
		`{"a":1}`: "openapi: is required",
		"a: &a\n": "info.title: is required",
		"{}":      "x-svc-api-gateway: is required",
		`{"openapi":"3.0.0","info":{"title":"t","version":"1"},"x-svc-api-gateway":{"server":{"listenPath":{"value":"no"}}},"x-svc-streaming":{}}`: "x-svc-api-gateway.server.listenPath.value: ",
	} {
		b.ofStreams("POST", path, b.editor, body).Want(400).Says(want)
	}
	b.ofStreams("POST", path, b.editor, `{"a":"`+strings.Repeat("x", openapi.MaxSize)+`"}`).Want(413).Says("larger than 1 MiB")
	b.ofStreams("PUT", path+"/none", b.editor, `{"openapi":"3.0.3"}`).Want(404).Says("API definition does not exist")
	b.Call("GET", path+"/none", b.viewer, "").Want(404)
	b.Call("DELETE", path+"/none", b.editor, "").Want(404)
	b.createAPI(b.editor, "plain", "/plain")
	for _, method := range []string{"GET", "DELETE"} {
		b.Call(method, path+"/plain", b.editor, "").Want(404).Says("The API has no streams; /api/apis/{id} has its definition")
	}
	b.ofStreams("PUT", path+"/plain", b.editor, `{"openapi":"3.0.3"}`).Want(404).Says("has no streams")
}

func TestStreamsNeedTheirSetting(t *testing.T) {
	b := start(t, func(d *Deps) { d.Streaming = false })
	for _, call := range [][2]string{{"POST", ""}, {"GET", "/a"}, {"PUT", "/a"}, {"DELETE", "/a"}} {
		b.Call(call[0], "/api/apis/streams"+call[1], "", "").Want(401)
		b.ofStreams(call[0], "/api/apis/streams"+call[1], b.editor, "").Want(403).Says("set streaming.enabled to true")
	}
}
