package admintest

import (
	"bytes"
	"context"
	"fmt"
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

// Call makes a call as the principal that a credential stands for: a role of the
// organisation "one"; "two:" and a role of the organisation "two"; a role, an
// organisation and an id with spaces between; "" for none; and a session's credential,
// which Identify knows. Headers are names and values in turn.
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
	return &Answer{
		Status: http.Response.StatusCode(), ETag: string(http.Response.Header.Peek("ETag")), Body: bytes.Clone(http.Response.Body()), t: f.T, What: method + " " + path,
	}
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
	var p rest.Principal
	if n, _ := fmt.Sscan(who, &p.Role, &p.Org, &p.ID); n == 3 {
		p.Kind, p.Name = "user", p.ID+"@example.com"
		if p.Role == rest.Developer {
			p.Kind = "developer"
		}
		return p, nil
	}
	org := "one"
	if role, second := strings.CutPrefix(who, "two:"); second {
		org, who = "two", role
	}
	return rest.Principal{Org: org, ID: who, Name: who + "@" + org, Kind: "user", Role: rest.Role(who)}, nil
}

// fits reports whether a path is a route's, and notes what its names stand for.
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
