package control

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// answerWithin bounds the work on one call, including a reload that it waits for.
const answerWithin = 30 * time.Second

// A handler answers a call with an object that is sent as JSON, or with an error.
type handler func(ctx context.Context, c *call) (answer any, err error)

// A route is one method on one path. A final slash is ignored.
type route struct {
	method, path string
	params       []string // query parameters; others are refused
	handle       handler
}

// prefix begins all paths that need the secret.
const prefix = "/svc"

// routes lists every route below prefix.
func (a *API) routes() []route {
	block, reset, strict := []string{"block"}, []string{"reset_quota", "strict"}, []string{"strict"}
	ending := []string{"code", "close_reason"}
	key := []string{"hashed", "api_id", "org_id", "username", "suppress_reset"}
	given := append(strict, key...)
	list := append([]string{"filter"}, key...)
	all := []route{
		{"GET", "/svc/apis", nil, a.listAPIs},
		{"POST", "/svc/apis", strict, a.createAPI},
		{"GET", "/svc/apis/{id}", nil, a.getAPI},
		{"PUT", "/svc/apis/{id}", strict, a.updateAPI},
		{"DELETE", "/svc/apis/{id}", nil, a.deleteAPI},
		{"GET", "/svc/apis/{id}/versions", nil, a.listVersions},

		{"GET", "/svc/graphql/usage/{id}", []string{"type", "field", "key", "keys", "p", "page_size"}, a.fieldUsage},

		{"POST", "/svc/explain", nil, a.explain},

		{"GET", "/svc/connections", []string{"api_id", "org_id", "key_hash", "after", "page_size"}, a.listConnections},
		{"DELETE", "/svc/connections", append([]string{"api_id", "org_id", "key_hash"}, ending...), a.endConnections},
		{"GET", "/svc/connections/{id}", nil, a.getConnection},
		{"DELETE", "/svc/connections/{id}", ending, a.endConnection},

		{"GET", "/svc/streams", []string{"api_id", "org_id", "phase", "after", "page_size"}, a.listStreams},
		{"GET", "/svc/streams/{id}", []string{"phase", "after", "page_size"}, a.showStreams},
		{"POST", "/svc/streams/{id}/try", nil, a.tryStream},

		{"GET", "/svc/policies", nil, a.listPolicies},
		{"POST", "/svc/policies", strict, a.createPolicy},
		{"GET", "/svc/policies/{id}", nil, a.getPolicy},
		{"PUT", "/svc/policies/{id}", strict, a.updatePolicy},
		{"DELETE", "/svc/policies/{id}", nil, a.deletePolicy},

		{"GET", "/svc/keys", list, a.listKeys},
		{"POST", "/svc/keys", given, a.addKey},
		{"POST", "/svc/keys/create", given, a.createKey},
		{"POST", "/svc/keys/preview", given, a.previewKey},
		{"POST", "/svc/keys/reset/{id}", key, a.resetQuota},
		{"POST", "/svc/keys/policy/{id}", key, a.swapPolicies},
		{"POST", "/svc/keys/{id}/rotate", key, a.rotateKey},
		{"DELETE", "/svc/keys/{id}/rotate", key, a.retireKeys},
		{"POST", "/svc/keys/{id}", given, a.nameKey},
		{"GET", "/svc/keys/{id}", key, a.getKey},
		{"PUT", "/svc/keys/{id}", given, a.updateKey},
		{"DELETE", "/svc/keys/{id}", key, a.deleteKey},

		{"GET", "/svc/org/keys", nil, a.listOrgs},
		{"POST", "/svc/org/keys/{id}", reset, a.addOrg},
		{"PUT", "/svc/org/keys/{id}", reset, a.updateOrg},
		{"GET", "/svc/org/keys/{id}", nil, a.getOrg},
		{"DELETE", "/svc/org/keys/{id}", nil, a.deleteOrg},

		{"DELETE", "/svc/cache/{id}", nil, a.invalidateCache},

		{"GET", "/svc/reload", block, a.reload},
		{"GET", "/svc/reload/group", block, a.reloadGroup},
	}
	if a.deps.Certificates == nil {
		return all
	}
	return append(all,
		route{"GET", "/svc/certs", []string{"org_id", "mode"}, a.listCertificates},
		route{"POST", "/svc/certs", []string{"org_id"}, a.addCertificate},
		route{"GET", "/svc/certs/{id}", []string{"org_id"}, a.getCertificate},
		route{"DELETE", "/svc/certs/{id}", []string{"org_id"}, a.deleteCertificate},
	)
}

// routed routes what is below prefix, and the health paths.
func (a *API) routed(below []route) fasthttp.RequestHandler {
	r := newRouter(a)
	for _, route := range below {
		r.Handle(route.method, route.path, a.serve(route))
	}
	r.GET("/hello", a.hello)
	r.GET("/health", a.healthy)
	r.GET("/ready", a.ready)
	r.GET("/live", a.live)
	return func(rc *fasthttp.RequestCtx) {
		dropFinalSlash(rc.URI())
		r.Handler(rc)
	}
}

// dropFinalSlash removes a final slash. The router cannot serve both forms: it redirects
// one to the other.
func dropFinalSlash(uri *fasthttp.URI) {
	if path := uri.PathOriginal(); len(path) > 1 && path[len(path)-1] == '/' {
		uri.SetPathBytes(slices.Clone(path[:len(path)-1]))
	}
}

func newRouter(a *API) *router.Router {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	r.NotFound = func(rc *fasthttp.RequestCtx) {
		a.fail(rc, refuse(fasthttp.StatusNotFound, "Not found"))
	}
	r.MethodNotAllowed = func(rc *fasthttp.RequestCtx) {
		// The router adds OPTIONS, which nothing here answers.
		allowed := strings.Split(string(rc.Response.Header.Peek(fasthttp.HeaderAllow)), ", ")
		a.fail(rc, refuse(fasthttp.StatusMethodNotAllowed, "Method not allowed"))
		rc.Response.Header.Set(fasthttp.HeaderAllow, strings.Join(slices.DeleteFunc(allowed, isOptions), ", "))
	}
	r.PanicHandler = func(rc *fasthttp.RequestCtx, cause any) {
		rc.Response.Reset()
		a.fail(rc, &Error{
			Status: fasthttp.StatusInternalServerError, Message: "Internal error",
			Cause: fmt.Errorf("panic: %v\n%s", cause, debug.Stack()),
		})
	}
	return r
}

// Handle answers all calls: those below /svc/, which need the secret, and the health paths.
func (a *API) Handle(rc *fasthttp.RequestCtx) {
	if !a.deps.Secret.Empty() && isBelow(prefix, rc.URI().PathOriginal()) && !a.authorised(rc) {
		a.fail(rc, a.notAuthorised(rc))
		return
	}
	a.handler(rc)
}

// resourceOf returns the kind of resource that a path names, without what follows it: that
// may be a key.
func resourceOf(path []byte) string {
	below, _ := bytes.CutPrefix(path, []byte("/svc/"))
	kind, _, _ := bytes.Cut(below, []byte("/"))
	if len(kind) > 20 || len(bytes.Trim(kind, "abcdefghijklmnopqrstuvwxyz")) > 0 {
		return "unknown"
	}
	return string(kind)
}

// notAuthorised counts a call without the secret, and returns the answer to it. Calls with
// the secret are never refused: they may come from the same address.
func (a *API) notAuthorised(rc *fasthttp.RequestCtx) *Error {
	a.refused.Add(1)
	wait := a.throttle.Failed(rc.RemoteIP())
	if wait == 0 {
		a.log.Warn("gateway API: a call without the right secret was refused", "address", rc.RemoteIP().String(), "method", string(rc.Method()), "resource", resourceOf(rc.URI().PathOriginal()))
		return refuse(fasthttp.StatusForbidden, "Attempted administrative access with invalid or missing key!")
	}
	e := refuse(fasthttp.StatusTooManyRequests, "Too many failed attempts from this address; try again later")
	e.RetryAfter = int(wait.Seconds()) + 1
	return e
}

// authorised reports whether the request has the secret. Two headers are refused.
func (a *API) authorised(rc *fasthttp.RequestCtx) bool {
	shown := rc.Request.Header.PeekAll("X-Svc-Authorization")
	return len(shown) == 1 && a.deps.Secret.Equal(shown[0])
}

// isBelow reports whether path is tree or below it.
func isBelow(tree string, path []byte) bool {
	rest, ok := strings.CutPrefix(string(path), tree)
	return ok && (rest == "" || rest[0] == '/')
}

func isOptions(method string) bool { return method == fasthttp.MethodOptions }

// serve returns the handler of a route.
func (a *API) serve(r route) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
		defer cancel()
		c, err := newCall(rc, r.params)
		var answer any
		if err == nil {
			answer, err = r.handle(ctx, c)
		}
		if err != nil {
			a.fail(rc, err)
		} else {
			a.answer(rc, fasthttp.StatusOK, answer)
		}
	}
}
