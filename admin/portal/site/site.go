// Package site is the pages of the developer portal, rendered on the server: they work
// without scripts. It is a client of the portal's REST in the same process. A form
// becomes a call with the visitor's session and address, and the answer a page, so that
// the rules of sign-up, the throttles, the roles and the audit log exist once.
package site

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
)

// Deps are what a Site works with.
type Deps struct {
	Call      func(*fasthttp.RequestCtx) // answers a call of the REST in this process
	PublicURL string                     // of the portal, as in the links of letters
	Gateway   func() string              // URL of the gateways for examples; nil or "": not known
	Now       func() time.Time
	Log       *slog.Logger

	Playground []byte // its script, compressed with gzip; nil: there is none
}

// Site serves the pages. Make one with New. It is safe for concurrent use.
type Site struct {
	deps   Deps
	base   string // path of the portal as browsers see it, without a final slash
	secure bool   // browsers reach it by https
	pages  *pages
	assets map[string]*asset // by path below /assets/
	routes []route
}

// Root is the path below which every server has the site. A proxy in front may show it at
// another, which is that of the public URL.
const Root = "/portal"

// New returns a Site.
func New(d Deps) (*Site, error) {
	public, err := url.Parse(d.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("the portal's URL: %w", err)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	s := &Site{deps: d, base: strings.TrimRight(public.EscapedPath(), "/"), secure: public.Scheme == "https"}
	if s.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if err := s.addPlayground(d.Playground); err != nil {
		return nil, err
	}
	if s.pages, err = s.loadPages(); err != nil {
		return nil, err
	}
	s.routes = s.table()
	return s, nil
}

// A route is a method on a path of the site.
type route struct {
	method, path string
	signedIn     bool // only developers who are signed in; others are asked to sign in
	handle       func(v *visit) error
}

// table lists the routes of the site.
func (s *Site) table() []route {
	all := []route{
		{"GET", "/", false, showCatalogue},
		{"GET", "/apis/{api}", false, showAPI},
		{"GET", "/pages/{page}", false, showPage},
		{"GET", "/brand.css", false, serveBrandStyle},
		{"GET", "/brand/logo", false, serveLogo},
		{"POST", "/theme", false, chooseTheme},
	}
	for _, more := range [][]route{accountRoutes(), requestRoutes(), keyRoutes(), clientRoutes(), webhookRoutes(), referenceRoutes(), streamRoutes()} {
		all = append(all, more...)
	}
	return all
}

// Has reports whether a path is one of the site's.
func Has(path string) bool {
	return path == Root || strings.HasPrefix(path, Root+"/")
}

// Handle answers a request for a page.
func (s *Site) Handle(ctx *fasthttp.RequestCtx) {
	setHeaders(ctx)
	path := strings.TrimSuffix(strings.TrimPrefix(string(ctx.Path()), Root), "/")
	if name, found := strings.CutPrefix(path, "/assets/"); found {
		s.serveAsset(ctx, name)
		return
	}
	if path == "" {
		path = "/"
	}
	v := &visit{site: s, http: ctx, path: path}
	if err := v.serve(); err != nil {
		v.fail(err)
	}
}

// serve finds the route of a visit and runs it.
func (v *visit) serve() error {
	method := string(v.http.Method())
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
	}
	var found *route
	allowed := ""
	for i := range v.site.routes {
		r := &v.site.routes[i]
		params, ok := matchPath(r.path, v.path)
		if !ok {
			continue
		}
		if r.method == method {
			found, v.params = r, params
			break
		}
		allowed = r.method
	}
	if err := v.begin(); err != nil {
		return err
	}
	switch {
	case found == nil && allowed != "":
		v.http.Response.Header.Set(fasthttp.HeaderAllow, allowed)
		return &fault{Status: fasthttp.StatusMethodNotAllowed, Message: "This page cannot be called so."}
	case found == nil:
		return &fault{Status: fasthttp.StatusNotFound, Message: "There is no such page."}
	case method == fasthttp.MethodPost:
		if err := v.checkForm(found); err != nil {
			return err
		}
	}
	if found.signedIn && v.me == nil {
		return v.askToSignIn(method)
	}
	return found.handle(v)
}

// matchPath compares a path with a pattern whose segments in braces match one segment.
func matchPath(pattern, path string) (map[string]string, bool) {
	if !strings.Contains(pattern, "{") {
		return nil, pattern == path
	}
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}
	params := make(map[string]string)
	for i, w := range want {
		name, isParam := strings.CutPrefix(w, "{")
		switch {
		case !isParam && w != have[i], isParam && have[i] == "":
			return nil, false
		case isParam:
			params[strings.TrimSuffix(name, "}")] = have[i]
		}
	}
	return params, true
}

// fail answers with a page about an error.
func (v *visit) fail(err error) {
	f, known := errors.AsType[*fault](err)
	if !known {
		v.site.deps.Log.Error("a page of the portal failed", "path", rest.Truncate(v.path, 100), "err", err)
		f = &fault{Status: fasthttp.StatusInternalServerError, Message: "Something went wrong on our side. Please try again."}
	}
	if f.Status == fasthttp.StatusUnauthorized && v.me == nil && string(v.http.Method()) == fasthttp.MethodGet {
		if v.askToSignIn(fasthttp.MethodGet) == nil {
			return
		}
	}
	v.http.Response.ResetBody()
	if f.Retry != "" {
		v.http.Response.Header.Set(fasthttp.HeaderRetryAfter, f.Retry)
	}
	if err := v.show(f.Status, "fault", titleOf(f.Status), f); err != nil {
		v.site.deps.Log.Error("the page about an error failed", "err", err)
		v.http.Error("Something went wrong. Please try again.", fasthttp.StatusInternalServerError)
	}
}

func titleOf(status int) string {
	switch status {
	case fasthttp.StatusNotFound:
		return "Not found"
	case fasthttp.StatusForbidden:
		return "Not allowed"
	case fasthttp.StatusTooManyRequests:
		return "Please wait"
	case fasthttp.StatusServiceUnavailable:
		return "Not available at the moment"
	case fasthttp.StatusInternalServerError:
		return "Something went wrong"
	}
	return "That did not work"
}
