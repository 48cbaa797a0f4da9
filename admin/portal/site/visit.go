package site

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/content"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
)

// A visit is one request for a page.
type visit struct {
	site   *Site
	http   *fasthttp.RequestCtx
	path   string            // below Root, without a final slash
	params map[string]string // of the path

	session string           // credential of the session in the cookie; "" for none
	me      *model.Developer // the signed-in developer; nil for a visitor
	config  catalogue.PublicConfiguration
	brand   look
	menu    []content.Item
	visitor string // the value that tokens of forms before sign-in are bound to
}

// A fault is why a page cannot be shown, or a form not accepted.
type fault struct {
	Status   int
	Message  string
	Problems []string // each "member: message"
	Retry    string   // seconds; "" for none
}

// Error returns the message.
func (f *fault) Error() string { return f.Message }

// begin finds out who visits and what the pages need to know of the portal.
func (v *visit) begin() error {
	v.session = string(v.http.Request.Header.Cookie(v.site.cookieName()))
	if v.session != "" {
		who := new(model.Developer)
		err := v.get("/api/portal/me", who)
		f, expected := err.(*fault)
		switch {
		case err == nil:
			v.me = who
		case expected && (f.Status == fasthttp.StatusUnauthorized || f.Status == fasthttp.StatusForbidden):
			v.session = ""
			v.forgetSession()
		default:
			return err
		}
	}
	if err := v.get("/api/portal/public/configuration", &v.config); err != nil {
		return err
	}
	var menu content.ShownMenu
	if err := v.get("/api/portal/public/menu", &menu); err != nil {
		return err
	}
	v.menu = menu.Items
	return v.loadBrand()
}

// get makes a GET of the REST and decodes its answer.
func (v *visit) get(path string, into any) error {
	_, err := v.call(call{method: fasthttp.MethodGet, path: path, into: into})
	return err
}

// raw makes a GET of the REST and returns the body of its answer.
func (v *visit) raw(path string) (body []byte, err error) {
	_, err = v.call(call{method: fasthttp.MethodGet, path: path, raw: &body})
	return body, err
}

// post makes a POST of the REST with the key of the form, so that sending a form twice
// does its work once.
func (v *visit) post(path string, body, into any) error {
	_, err := v.call(call{method: fasthttp.MethodPost, path: path, body: body, into: into, once: v.value("once")})
	return err
}

// A call is one of the REST.
type call struct {
	method, path string
	body         any     // sent as JSON; nil: none
	into         any     // what the answer is decoded into; nil: nothing
	once         string  // Idempotency-Key
	match        string  // If-Match
	raw          *[]byte // set to the body of an answer that is no JSON
	streamed     *bool   // set if the answer is a stream, which the visitor gets as it is; nil: it is none
}

// call makes a call with the visitor's session and address. A refusal is a *fault.
func (v *visit) call(c call) (tag string, err error) {
	var req fasthttp.Request
	req.Header.SetMethod(c.method)
	req.SetRequestURI(c.path)
	req.Header.SetHostBytes(v.http.Host())
	req.Header.SetUserAgentBytes(v.http.UserAgent())
	if v.session != "" {
		req.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+v.session)
	}
	if c.once != "" {
		req.Header.Set("Idempotency-Key", c.once)
	}
	if c.match != "" {
		req.Header.Set(fasthttp.HeaderIfMatch, c.match)
	}
	if c.body != nil {
		body, err := rest.Encode(c.body)
		if err != nil {
			return "", err
		}
		req.Header.SetContentType("application/json")
		req.SetBody(body)
	}
	var inside fasthttp.RequestCtx
	inside.Init(&req, v.http.RemoteAddr(), nil)
	v.site.deps.Call(&inside)
	answer := &inside.Response
	if answer.StatusCode() >= 300 {
		return "", faultOf(answer)
	}
	if events := rest.TakeStream(&inside); events != nil && c.streamed != nil {
		*c.streamed = true
		rest.SetStream(v.http, events)
		return "", nil
	}
	if c.raw != nil {
		*c.raw = bytes.Clone(answer.Body())
		return "", nil
	}
	if c.into != nil {
		if err := json.Unmarshal(answer.Body(), c.into); err != nil {
			return "", fmt.Errorf("reading the answer of %s %s: %w", c.method, c.path, err)
		}
	}
	return string(answer.Header.Peek(fasthttp.HeaderETag)), nil
}

// faultOf returns a refusal of the REST.
func faultOf(answer *fasthttp.Response) *fault {
	f := &fault{Status: answer.StatusCode(), Retry: string(answer.Header.Peek(fasthttp.HeaderRetryAfter))}
	var said rest.Envelope
	if json.Unmarshal(answer.Body(), &said) == nil {
		f.Message, f.Problems = said.Message, said.Errors
	}
	if f.Message == "" {
		f.Message = "The call was refused."
	}
	if location := answer.Header.Peek(fasthttp.HeaderLocation); len(location) > 0 {
		f.Message = "Keys are requested on another page: " + string(location)
	}
	return f
}

// query returns a parameter of the address.
func (v *visit) query(name string) string {
	return strings.ToValidUTF8(string(v.http.QueryArgs().Peek(name)), "")
}

// value returns a member of the form that was sent.
func (v *visit) value(name string) string {
	return strings.ToValidUTF8(string(v.http.PostArgs().Peek(name)), "")
}

// values returns all members of the form with a name.
func (v *visit) values(name string) (all []string) {
	for _, one := range v.http.PostArgs().PeekMulti(name) {
		all = append(all, strings.ToValidUTF8(string(one), ""))
	}
	return all
}

// link returns the address of a page of the site.
func (v *visit) link(path string) string { return v.site.base + path }

// redirect sends the browser to a page of the site.
func (v *visit) redirect(path string) error {
	v.http.Response.Header.Set(fasthttp.HeaderLocation, v.link(path))
	v.http.SetStatusCode(fasthttp.StatusSeeOther)
	v.http.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	return nil
}

// askToSignIn sends the visitor to the page where developers sign in, and back afterwards.
func (v *visit) askToSignIn(method string) error {
	to := "/login"
	if method == fasthttp.MethodGet {
		next := v.path
		if q := v.http.QueryArgs().String(); q != "" {
			next += "?" + q
		}
		to += "?next=" + url.QueryEscape(next)
	}
	return v.redirect(to)
}

// nextPage returns the page of the site that a sign-in leads to. Other addresses are not
// followed.
func nextPage(text string) string {
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n") || len(text) > 500 {
		return "/"
	}
	if u, err := url.Parse(text); err != nil || u.Host != "" || u.Scheme != "" {
		return "/"
	}
	return text
}

// escape returns a value as a segment of a path.
func escape(value string) string { return url.PathEscape(value) }
