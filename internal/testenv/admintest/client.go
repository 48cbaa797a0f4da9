package admintest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Server is a running admin, or part of one: *admin.Server is one.
type Server interface {
	Serve(ln net.Listener) error
	Shutdown(ctx context.Context) error
}

// Serve serves on a port of the loopback interface until the test ends, and returns
// the base URL.
func Serve(t testing.TB, s Server) (url string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// Client makes calls of an admin over HTTP.
type Client struct {
	URL  string // base URL
	HTTP *http.Client

	t testing.TB
}

// NewClient returns a client of the admin at a base URL.
func NewClient(t testing.TB, url string) *Client {
	c := &Client{URL: url, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second}, t: t}
	t.Cleanup(c.HTTP.CloseIdleConnections)
	return c
}

// At returns the client for another base URL.
func (c *Client) At(url string) *Client { return &Client{URL: url, HTTP: c.HTTP, t: c.t} }

// Call makes a call with an access key, "" for none. Headers are names and values in
// turn.
func (c *Client) Call(method, path, key, body string, headers ...string) *Answer {
	c.t.Helper()
	answer, err := c.Try(method, path, key, body, headers...)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// Try is Call for calls that may fail. It may be called on any goroutine.
func (c *Client) Try(method, path, key, body string, headers ...string) (*Answer, error) {
	var sent io.Reader
	if body != "" {
		sent = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, c.URL+path, sent)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return c.send(req)
}

// Do makes a call that the test wrote itself.
func (c *Client) Do(req *http.Request) *Answer {
	c.t.Helper()
	answer, err := c.send(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

func (c *Client) send(req *http.Request) (*Answer, error) {
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	return &Answer{Status: resp.StatusCode, ETag: resp.Header.Get("ETag"), Header: resp.Header, Body: read, t: c.t, What: req.Method + " " + req.URL.RequestURI()}, err
}

// Answer is the answer to a call.
type Answer struct {
	Status int
	ETag   string
	Header http.Header // nil for calls that were not made over HTTP
	Body   []byte
	What   string // method and path, for messages

	t testing.TB
}

// NoAnswer returns an answer without a status whose body is an empty object, for calls
// that failed.
func NoAnswer(t testing.TB) *Answer { return &Answer{Body: []byte("{}"), t: t} }

// Want ends the test when the status is another one. It checks that a failure has the
// envelope, but for the OAuth routes, whose errors RFC 6749 defines.
func (a *Answer) Want(status int) *Answer {
	a.t.Helper()
	if a.Status != status {
		a.t.Fatalf("%s: %d %s, want %d", a.What, a.Status, a.Body, status)
	}
	if status >= 400 && !strings.Contains(a.What, "HEAD") && !strings.Contains(a.What, "/oauth/") &&
		(a.Text("Status") != "Error" || a.Text("Message") == "" || !bytes.Contains(a.Body, []byte(`"Meta":null`))) {
		a.t.Errorf("%s: %d without the envelope: %s", a.What, a.Status, a.Body)
	}
	if kind := a.Header.Get("Content-Type"); a.Header != nil && status != 304 && kind != "application/json" && (status != 200 || kind != "text/plain; charset=utf-8") {
		a.t.Errorf("%s: content type %q", a.What, kind)
	}
	return a
}

// Says fails the test for each part that is not in the body.
func (a *Answer) Says(parts ...string) *Answer {
	a.t.Helper()
	for _, part := range parts {
		if !bytes.Contains(a.Body, []byte(part)) {
			a.t.Errorf("%s: %s is not in %s", a.What, part, a.Body)
		}
	}
	return a
}

// Hides fails the test for each part that is in the body.
func (a *Answer) Hides(parts ...string) *Answer {
	a.t.Helper()
	for _, part := range parts {
		if bytes.Contains(a.Body, []byte(part)) {
			a.t.Errorf("%s: %s is in %s", a.What, part, a.Body)
		}
	}
	return a
}

// Into decodes the body.
func (a *Answer) Into(value any) {
	a.t.Helper()
	if err := json.Unmarshal(a.Body, value); err != nil {
		a.t.Fatalf("%s: %v in %s", a.What, err, a.Body)
	}
}

// Object returns the object that the body is.
func (a *Answer) Object() (members map[string]any) {
	a.t.Helper()
	a.Into(&members)
	return members
}

// Text returns a member of the object that the body is; "" when that is no text.
func (a *Answer) Text(member string) string {
	a.t.Helper()
	text, _ := a.Object()[member].(string)
	return text
}

// Data returns the objects of the list that the body is.
func (a *Answer) Data() []map[string]any {
	a.t.Helper()
	var list struct{ Data []map[string]any }
	a.Into(&list)
	return list.Data
}
