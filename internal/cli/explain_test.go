package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/testenv/golden"
)

// explained holds the responses of the test servers by the last part of the request's
// URL.
var explained = map[string]string{
	"allowed": `{"method":"GET","path":"/o/allowed","revision":"42","api":{"id":"o"},"key":{"name":"3fa9c1d2e4b5","alias":"shop","policies":["demo"]},
		"steps":[{"stage":"route","result":"ok","said":"API \"o\" by listen path /o/"},{"stage":"limit","result":"ok","said":"rate 3 of 100 per 60 s","facts":[{"rule":"rate","value":"100 per 60 s","seen":"3 used","from":"policy demo"}]}],
		"outcome":{"allowed":true,"upstream":{"address":"10.0.0.1:80","method":"GET","target":"/allowed","added":["X-Own: 1"],"removed":["Authorization"],"body":"3 bytes"}}}`,
	"refused": `{"method":"POST","path":"/o/refused","revision":"42","steps":[{"stage":"route","result":"ok","said":"API \"o\""},
		{"stage":"graphql","result":"fail","said":"depth limit exceeded: 5 > 3","facts":[{"rule":"max_query_depth","value":"3","seen":"5 at 1:9","from":"policy demo"}]}],
		"outcome":{"allowed":false,"status":403,"reason":"depth_limit","body":"{\n    \"error\": \"depth limit exceeded\"\n}","fix":"raise max_query_depth"}}`,
	"remembered": `{"refusal":{"id":"0123456789abcdef0123456789abcdef","at":"2026-11-21T20:00:00Z","stage":"limit","status":403,"reason":"quota_exceeded","message":"Quota exceeded",
		"method":"GET","path":"/o/x","client":"203.0.113.9","api":{"id":"o","version":"v1"},"key":"3fa9c1d2e4b5","policy":"demo","revision":"42",
		"limits":[{"kind":"quota","max":10,"period":"1m0s","remaining":0,"reset_at":"2026-11-21T20:00:41Z"}]}}`,
	"wrong": `{"status":"error","message":"Validation failed. Reason: url: names no host.","errors":[{"path":"url","message":"names no host"}]}`,
}

// asking is a server that explains, and the requests that it received.
type asking struct {
	url   string
	asked []string
}

func newAsking(t *testing.T) *asking {
	a := &asking{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.asked = append(a.asked, fmt.Sprintf("%s %s %s%s %s", r.Method, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("X-Svc-Authorization"), body))
		answer := explained["remembered"]
		for name, text := range explained {
			if strings.Contains(string(body), "/"+name) {
				answer = text
			}
		}
		if answer == explained["wrong"] {
			w.WriteHeader(400)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

func TestExplanationsAreAskedForAndPrinted(t *testing.T) {
	a := newAsking(t)
	dir := t.TempDir()
	body := filepath.Join(dir, "body.json")
	if err := os.WriteFile(body, []byte(`{"query":"{ x }"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := []string{"SLUICE_SERVER=" + a.url, "SLUICE_TOKEN=hunter2"}
	var all strings.Builder
	for _, c := range []struct {
		line string
		env  []string
	}{
		{"explain GET /o/allowed --key slk_x -H X:1 -H Y:2", admin},
		{"explain /o/allowed --facts --key-hash 3fa9 --client 203.0.113.9 --tls --revision 41", admin},
		{"explain GET /o/allowed -o json", admin},
		{"explain GET /o/allowed -o yaml", admin},
		{"explain POST /o/refused -d @" + body, admin},
		{"explain POST /o/refused -d text --gateway " + a.url, []string{"SLUICE_SECRET=hunter2-hunter2-hunter2"}},
		{"explain --id 0123456789abcdef0123456789abcdef", admin},
		{"explain GET /o/wrong", admin},
		{"explain", admin},
		{"explain GET", admin},
		{"explain GET /x --id 0123456789abcdef0123456789abcdef", admin},
		{"explain GET /x -d @/nonexistent/file", admin},
		{"explain GET /x --server " + a.url + " --gateway " + a.url, admin},
		{"explain GET /x --server nonsense --token t", nil},
		{"explain GET /x --server " + a.url, nil},
		{"explain GET /x --gateway " + a.url, nil},
		{"explain GET /x", nil},
		{"explain GET /x --server http://127.0.0.1:1 --token t", nil},
	} {
		text := run(c.line, append(c.env, "SLUICE_DATA_DIR="+dir), nil)
		all.WriteString(text)
	}
	for _, line := range a.asked {
		all.WriteString("asked| " + line + "\n")
	}
	text := strings.NewReplacer(a.url, "http://SERVER", dir, "DIR").Replace(all.String())
	golden.Equal(t, "explain.golden", text)
}

func TestExplanationsAskTheServerOfThisMachine(t *testing.T) {
	a := newAsking(t)
	address := strings.TrimPrefix(a.url, "http://")
	write := func(dir, name string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("kept-secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for _, c := range []struct{ name, dir, setting, want string }{
		{"admin", write(t.TempDir(), "admin.key"), "SLUICE_ADMIN_LISTEN=" + address, "POST /api/explain Bearer kept-secret "},
		{"gateway", write(t.TempDir(), "gateway.secret"), "SLUICE_GATEWAY_LISTEN=" + address, "POST /svc/explain kept-secret "},
		{"own address", write(t.TempDir(), "gateway.secret"), "SLUICE_GATEWAY_CONTROL_LISTEN=" + address, "POST /svc/explain kept-secret "},
	} {
		a.asked = nil
		got := run("explain GET /o/allowed", []string{"SLUICE_DATA_DIR=" + c.dir, c.setting}, nil)
		if !strings.Contains(got, "exit 0\n") || len(a.asked) != 1 || !strings.HasPrefix(a.asked[0], c.want) {
			t.Errorf("%s: %s\n%q", c.name, got, a.asked)
		}
	}
}

func TestYAMLOfJSON(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`{"a":1,"b":"x: y","c":null,"d":true}`, "a: 1\nb: \"x: y\"\nc: null\nd: true\n"},
		{`{"a":{"b":[1,{"c":2,"d":[]},[3]],"e":{}}}`, "a:\n  b:\n    - 1\n    - c: 2\n      d: []\n    - \n      - 3\n  e: {}\n"},
		{`[]`, " []\n"},
		{`7`, " 7\n"},
	} {
		got, err := shell.YAML([]byte(c.json))
		if err != nil || got != c.want {
			t.Errorf("%s: %q %v, want %q", c.json, got, err, c.want)
		}
	}
	if _, err := shell.YAML([]byte(`{"a":`)); err == nil {
		t.Error("half a document is printed")
	}
}

func TestStagesOfOtherAPIsAreToldWithThese(t *testing.T) {
	var e explanation
	text := `{"steps":[{"stage":"upstream","result":"ok","said":"goes on"},{"api":"inner","stage":"auth","result":"ok"}]}`
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	if got := e.text(false); !strings.Contains(got, " 1 upstream    ok    goes on\n 2 inner/auth  ok\n") {
		t.Error(got)
	}
}
