package rig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// An Answer is a response with its whole body.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// String returns the answer in one line.
func (a Answer) String() string {
	return fmt.Sprintf("%d %v %s", a.Status, a.Header, strings.Join(strings.Fields(a.Body), " "))
}

// Reason returns the code of a refusal by the gateway, "" for other answers.
func (a Answer) Reason() string { return a.Header.Get("X-Sluice-Reason") }

// Into decodes the body as JSON.
func (a Answer) Into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), v); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
}

// FreshConns sends every request on a new connection: an idle one may lead to a
// process that has ended.
var FreshConns = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: Patience}

// Send makes one request on a new connection. body is text, raw bytes, a value to
// send as JSON, or nil; headers are names and values in turn.
func Send(method, url string, body any, headers ...string) (Answer, error) {
	return SendBy(FreshConns, method, url, body, headers...)
}

// SendBy is Send with a client.
func SendBy(client *http.Client, method, url string, body any, headers ...string) (Answer, error) {
	payload, err := Payload(body)
	if err != nil {
		return Answer{}, err
	}
	req, err := http.NewRequest(method, url, payload)
	if err != nil {
		return Answer{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, string(text)}, err
}

// Payload returns a body as Send sends it.
func Payload(body any) (io.Reader, error) {
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

// Call is Send that fails t if there is no answer.
func Call(t testing.TB, method, url string, body any, headers ...string) Answer {
	t.Helper()
	got, err := Send(method, url, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return got
}

// A Rest calls an admin's REST API.
type Rest struct {
	T   testing.TB
	URL string // of the admin
	Key string
}

// NewRest returns a client of the admin at a URL with a key.
func NewRest(t testing.TB, url, key string) *Rest { return &Rest{t, url, key} }

// Rest returns a client of the admin's REST API with the key of its first user.
func (s *Server) Rest() *Rest { return &Rest{s.T, s.Admin, s.AdminKey()} }

// Try makes one call. The answer may be a refusal.
func (r *Rest) Try(method, path string, body any) (Answer, error) {
	return Send(method, r.URL+path, body, "Authorization", r.Key, "Content-Type", "application/json")
}

// Do makes one call and fails the test unless the answer is 200.
func (r *Rest) Do(method, path string, body any) Answer {
	r.T.Helper()
	got, err := r.Try(method, path, body)
	if err != nil || got.Status != http.StatusOK && got.Status != http.StatusCreated {
		r.T.Fatalf("%s %s: %v %s", method, path, err, got)
	}
	return got
}

// An Object is a JSON object.
type Object = map[string]any

// APIDef returns a definition with the listen path /<id>/.
func APIDef(id, target string, keyless bool) Object {
	return Object{
		"api_id": id, "name": "API " + id, "use_keyless": keyless,
		"proxy": Object{"listen_path": "/" + id + "/", "target_url": target, "strip_listen_path": true},
	}
}

// AccessTo returns access rights to APIs.
func AccessTo(apis ...string) Object {
	rights := Object{}
	for _, id := range apis {
		rights[id] = Object{"api_id": id, "api_name": "API " + id, "versions": []string{"Default"}}
	}
	return rights
}

// NewKey creates a key with a session and returns it.
func (r *Rest) NewKey(session Object) string {
	r.T.Helper()
	var made struct {
		Key string `json:"key_id"`
	}
	r.Do(http.MethodPost, "/api/keys", session).Into(r.T, &made)
	if made.Key == "" {
		r.T.Fatal("the admin answered without a key")
	}
	return Plant(made.Key)
}
