package portaltest

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
)

// Front answers calls of routes on the goroutine of the test, as the admin does
// over a connection.
type Front struct {
	T      testing.TB
	Routes []rest.Route
	From   string // the address that calls come from

	// Identify says who presents a credential. One that is nobody's is refused
	// with the error.
	Identify func(ctx context.Context, credential string) (rest.Principal, error)
}

// Answer is what came back.
type Answer struct {
	Status int
	ETag   string
	Body   []byte

	t    testing.TB
	what string
}

// Call makes a call as who a credential stands for: a role of the organisation
// "one", "two:" and a role of the organisation "two", "" for nobody, and else
// what Identify knows. Headers are names and values in turn.
func (f *Front) Call(method, path, who, body string, headers ...string) *Answer {
	f.T.Helper()
	req := new(fasthttp.Request)
	req.Header.SetMethod(method)
	req.SetRequestURI(path)
	req.SetBodyString(body)
	req.Header.SetContentType("application/json")
	req.Header.SetUserAgent("a browser")
	if who != "" {
		req.Header.Set("Authorization", who)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	http := new(fasthttp.RequestCtx)
	http.Init(req, &net.TCPAddr{IP: net.ParseIP(f.From)}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f.serve(ctx, http, who); err != nil {
		fault, expected := rest.FaultOf(err)
		if !expected && fault.Status == 500 {
			f.T.Errorf("%s %s: %v", method, path, err)
		}
		fault.Write(http)
	}
	return &Answer{http.Response.StatusCode(), string(http.Response.Header.Peek("ETag")), bytes.Clone(http.Response.Body()), f.T, method + " " + path}
}

func (f *Front) serve(ctx context.Context, http *fasthttp.RequestCtx, who string) error {
	for i := range f.Routes {
		r := &f.Routes[i]
		if r.Method != string(http.Method()) || !fits(r.Path, http) {
			continue
		}
		c := &rest.Call{HTTP: http, Route: r, PageSize: 10}
		if err := c.CheckSizes(); err != nil {
			return err
		}
		var err error
		if c.Who, err = f.identify(ctx, who); err != nil {
			return err
		}
		switch {
		case who == "" && r.Role != rest.Anyone:
			return rest.Refuse(fasthttp.StatusUnauthorized, "Not authorised")
		case !r.Allows(c.Who.Role):
			return rest.Refuse(fasthttp.StatusForbidden, "access denied")
		}
		answer, err := r.Handle(ctx, c)
		if err != nil {
			return err
		}
		return c.Write(answer)
	}
	return rest.NotFound("no route")
}

func (f *Front) identify(ctx context.Context, who string) (rest.Principal, error) {
	switch {
	case who == "":
		return rest.Principal{}, nil
	case strings.HasPrefix(who, "slp_"):
		return f.Identify(ctx, who)
	}
	org := "one"
	if role, second := strings.CutPrefix(who, "two:"); second {
		org, who = "two", role
	}
	return rest.Principal{Org: org, ID: who, Name: who + "@" + org, Kind: "user", Role: rest.Role(who)}, nil
}

// fits tells whether a path is a route's, and notes what its names stand for.
func fits(pattern string, http *fasthttp.RequestCtx) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(string(http.URI().PathOriginal()), "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if name, found := strings.CutPrefix(want[i], "{"); found {
			http.SetUserValue(strings.TrimSuffix(name, "}"), have[i])
		} else if want[i] != have[i] {
			return false
		}
	}
	return true
}

// Want ends the test when the status is another one.
func (a *Answer) Want(status int) *Answer {
	a.t.Helper()
	if a.Status != status {
		a.t.Fatalf("%s: %d %s, want %d", a.what, a.Status, a.Body, status)
	}
	return a
}

// Says fails the test for each part that is not in the body.
func (a *Answer) Says(parts ...string) *Answer {
	a.t.Helper()
	for _, part := range parts {
		if !bytes.Contains(a.Body, []byte(part)) {
			a.t.Errorf("%s: %s is not in %s", a.what, part, a.Body)
		}
	}
	return a
}

// Hides fails the test for each part that is in the body.
func (a *Answer) Hides(parts ...string) *Answer {
	a.t.Helper()
	for _, part := range parts {
		if bytes.Contains(a.Body, []byte(part)) {
			a.t.Errorf("%s: %s is in %s", a.what, part, a.Body)
		}
	}
	return a
}

// Object returns the object that the body is.
func (a *Answer) Object() map[string]any {
	a.t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.Body, &m); err != nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.Body)
	}
	return m
}

// Text returns a member of the object that the body is; "" when that is no text.
func (a *Answer) Text(member string) string {
	a.t.Helper()
	text, _ := a.Object()[member].(string)
	return text
}
