package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answer is a response, read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// String is one line.
func (a answer) String() string {
	return fmt.Sprintf("%d %v %s", a.status, a.header, strings.Join(strings.Fields(a.body), " "))
}

// reason is the code of a refusal by the gateway.
func (a answer) reason() string { return a.header.Get("X-Sluice-Reason") }

// into decodes the body.
func (a answer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
}

// lone sends every request on a connection of its own: none was left behind by a
// process that is gone.
var lone = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

// send makes one request. body is text, raw bytes or what is sent as JSON, nil for
// none; headers are names and values in turn.
func send(method, url string, body any, headers ...string) (answer, error) {
	return sendBy(lone, method, url, body, headers...)
}

// sendBy is send with a client.
func sendBy(client *http.Client, method, url string, body any, headers ...string) (answer, error) {
	payload, err := payloadOf(body)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequest(method, url, payload)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

func payloadOf(body any) (io.Reader, error) {
	switch v := body.(type) {
	case nil:
		return http.NoBody, nil
	case string:
		return bytes.NewReader([]byte(v)), nil
	case []byte:
		return bytes.NewReader(v), nil
	}
	data, err := json.Marshal(body)
	return bytes.NewReader(data), err
}

// call is send that fails t without an answer.
func call(t testing.TB, method, url string, body any, headers ...string) answer {
	t.Helper()
	got, err := send(method, url, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return got
}

// rest calls an admin.
type rest struct {
	t   testing.TB
	url string // of the admin
	key string
}

// rest returns a client of the admin's REST as its first user.
func (s *server) rest() *rest { return &rest{s.t, s.admin, s.adminKey()} }

// try makes one call; the answer may be a refusal.
func (r *rest) try(method, path string, body any) (answer, error) {
	return send(method, r.url+path, body, "Authorization", r.key, "Content-Type", "application/json")
}

// do makes one call that must be answered 200.
func (r *rest) do(method, path string, body any) answer {
	r.t.Helper()
	got, err := r.try(method, path, body)
	if err != nil || got.status != http.StatusOK {
		r.t.Fatalf("%s %s: %v %s", method, path, err, got)
	}
	return got
}

// object is a JSON object.
type object = map[string]any

// apiDef is a definition with the given id, below the listen path /<id>/.
func apiDef(id, target string, keyless bool) object {
	return object{
		"api_id": id, "name": "API " + id, "use_keyless": keyless,
		"proxy": object{"listen_path": "/" + id + "/", "target_url": target, "strip_listen_path": true},
	}
}

// accessTo is the access rights to APIs.
func accessTo(apis ...string) object {
	rights := object{}
	for _, id := range apis {
		rights[id] = object{"api_id": id, "api_name": "API " + id, "versions": []string{"Default"}}
	}
	return rights
}

// newKey makes a key from a session and returns it.
func (r *rest) newKey(session object) string {
	r.t.Helper()
	var made struct {
		Key string `json:"key_id"`
	}
	r.do(http.MethodPost, "/api/keys", session).into(r.t, &made)
	if made.Key == "" {
		r.t.Fatal("the admin answered without a key")
	}
	return plant(made.Key)
}
