package site

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/clean"
	"github.com/sluicegate/sluice/admin/portal/content"
	"github.com/sluicegate/sluice/admin/portal/model"
)

//go:embed templates
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// pages are the compiled templates, by the name of the page.
type pages struct{ byName map[string]*template.Template }

// A page is what the layout and all pages know.
type page struct {
	Title    string
	Name     string // of the template
	Theme    string
	Here     string // path of the page, for a form that leads back
	Me       *model.Developer
	Config   catalogue.PublicConfiguration
	Brand    look
	Menu     []content.Item // what the organisation added to the menu
	Done     string         // what was done before the page was opened; "" for nothing
	Token    string         // of every form on the page
	SignedIn bool
	Data     any
}

// Once returns a name for one form on the page, so that the form is carried out once.
func (p *page) Once() string { return random() }

// At reports whether the page is at a path of the site.
func (p *page) At(path string) bool { return p.Here == path || strings.HasPrefix(p.Here, path+"?") }

// loadPages compiles the templates.
func (s *Site) loadPages() (*pages, error) {
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("listing the templates: %w", err)
	}
	layout, err := template.New("layout").Funcs(s.functions()).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("compiling the layout: %w", err)
	}
	all := &pages{byName: make(map[string]*template.Template)}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		one, err := layout.Clone()
		if err == nil {
			one, err = one.ParseFS(templateFiles, file)
		}
		if err != nil {
			return nil, fmt.Errorf("compiling the page %s: %w", name, err)
		}
		all.byName[name] = one
	}
	return all, nil
}

// functions are what templates can call.
func (s *Site) functions() template.FuncMap {
	return template.FuncMap{
		"link":    func(parts ...string) string { return s.base + strings.Join(parts, "") },
		"asset":   s.assetLink,
		"segment": escape,
		"date":    s.date,
		"until":   s.until,
		"number":  number,
		"percent": percent,
		"short":   short,
		"safe":    safe,
		"prose":   prose,
		"field":   func(f *form, name string) *field { return f.Fields[name] },
		"dict":    dict,
	}
}

// dict returns a map of names and values, for templates that take several.
func dict(pairs ...any) (map[string]any, error) {
	m := make(map[string]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is no name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// images are those of documents. They lie on other hosts, which are not to learn who reads
// what; their texts stay.
var images = regexp.MustCompile(`<img\b[^>]*?(?:\balt="([^"]*)"[^>]*)?>`)

// headings are those of documents.
var headings = regexp.MustCompile(`<h[1-6]>|</h[1-6]>`)

// safe returns HTML that the package clean made, without images, and with headings below
// that of the page, of which none skips a level.
func safe(clean string) template.HTML {
	text := images.ReplaceAllString(clean, "$1")
	var above []byte // levels of the headings that the present one is below, and its own
	text = headings.ReplaceAllStringFunc(text, func(tag string) string {
		if level := tag[len(tag)-2]; tag[1] != '/' {
			for len(above) > 0 && above[len(above)-1] >= level {
				above = above[:len(above)-1]
			}
			above = append(above, level)
		}
		return fmt.Sprintf("%s%d>", tag[:len(tag)-2], min(len(above)+1, 6))
	})
	return template.HTML(text) //nolint:gosec // the REST delivers it sanitised
}

// prose returns the HTML of a text in Markdown, "" for one that is too complicated: pages
// show that as it is.
func prose(text string) template.HTML {
	html, err := clean.Clean(clean.Markdown, text)
	if err != nil {
		return ""
	}
	return safe(html)
}

// date returns a time of the REST for people: the day and time in UTC.
func (s *Site) date(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.UTC().Format("2 Jan 2006, 15:04 UTC")
}

// until says how long it is until a time, such as "in 4 h 12 min".
func (s *Site) until(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	left := t.Sub(s.deps.Now())
	switch {
	case left <= 0:
		return "now"
	case left < time.Minute:
		return "in less than a minute"
	case left < time.Hour:
		return fmt.Sprintf("in %d min", int(left.Minutes()))
	case left < 48*time.Hour:
		return fmt.Sprintf("in %d h %d min", int(left.Hours()), int(left.Minutes())%60)
	}
	return fmt.Sprintf("in %d days", int(left.Hours()/24))
}

// number writes a number with commas between thousands.
func number(n any) string {
	var text string
	switch n := n.(type) {
	case int:
		text = strconv.Itoa(n)
	case int64:
		text = strconv.FormatInt(n, 10)
	case *int64:
		if n == nil {
			return ""
		}
		text = strconv.FormatInt(*n, 10)
	case float64:
		text = strconv.FormatFloat(n, 'f', -1, 64)
	default:
		return fmt.Sprint(n)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

func percent(part *int64, of int64) int64 {
	if part == nil || of <= 0 {
		return 0
	}
	return min(100, *part*100/of)
}

// short cuts a hash in the middle, as pages show it.
func short(hash string) string {
	if len(hash) <= 12 {
		return hash
	}
	return hash[:4] + "…" + hash[len(hash)-4:]
}

// show answers with a page.
func (v *visit) show(status int, name, title string, data any) error {
	tmpl := v.site.pages.byName[name]
	if tmpl == nil {
		return fmt.Errorf("there is no page %s", name)
	}
	here := v.path
	if q := v.http.QueryArgs().String(); q != "" && string(v.http.Method()) == fasthttp.MethodGet {
		here += "?" + q
	}
	p := &page{
		Title: title, Name: name, Theme: v.theme(), Here: here, Me: v.me, Config: v.config, Brand: v.brand, Menu: v.menu,
		Done: doneTexts[v.query("done")], SignedIn: v.me != nil, Data: data,
	}
	if v.me != nil || withForms[name] {
		p.Token = v.formToken()
	}
	var b bytes.Buffer
	if err := tmpl.ExecuteTemplate(&b, "layout", p); err != nil {
		return fmt.Errorf("rendering the page %s: %w", name, err)
	}
	v.http.SetStatusCode(status)
	h := &v.http.Response.Header
	h.SetContentType("text/html; charset=utf-8")
	if v.me != nil || p.Token != "" || status >= 400 {
		h.Set(fasthttp.HeaderCacheControl, "no-store")
	} else {
		h.Set(fasthttp.HeaderCacheControl, "private, no-cache")
	}
	v.http.Response.SetBody(b.Bytes())
	return nil
}

// withForms are the pages with forms that visitors can send before they sign in.
var withForms = map[string]bool{"login": true, "signup": true, "verify": true, "forgot": true, "reset": true}

// doneTexts say what was done, by the parameter of the address that a form leads to.
var doneTexts = map[string]string{
	"submitted": "Your request was sent. You get a letter when somebody has decided on it.",
	"withdrawn": "Your request was taken back.",
	"revoked":   "The key was revoked. Calls with it are refused from now on.",
	"saved":     "Saved.",
	"password":  "Your password was changed. All other sessions have ended.",
	"ended":     "The session has ended.",
	"reset":     "Your password was changed. Sign in with the new one.",
	"verified":  "Your address is confirmed. Sign in.",
	"out":       "You are signed out.",
	"deleted":   "Deleted.",
	"pinged":    "A test message is on its way; the log below shows whether it arrived.",
	"replayed":  "The message is sent once more.",
	"enabled":   "The webhook gets messages again.",
	"disabled":  "The webhook gets no more messages.",
	"account":   "Your account was deleted.",
}

// An asset is a file that browsers may keep for ever: its name has a hash of what it holds.
type asset struct {
	kind   string
	body   []byte
	packed []byte // body, compressed with gzip; nil: it is compressed when it is sent
	name   string // with the hash
}

func loadAssets() (map[string]*asset, error) {
	all := make(map[string]*asset)
	files, err := fs.Glob(staticFiles, "static/*")
	if err != nil {
		return nil, fmt.Errorf("listing the site's files: %w", err)
	}
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, file := range files {
		body, err := staticFiles.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a file of the site: %w", err)
		}
		name, ext := strings.TrimSuffix(path.Base(file), path.Ext(file)), path.Ext(file)
		sum := sha256.Sum256(body)
		one := &asset{kind: kinds[ext], body: body, name: name + "-" + hex.EncodeToString(sum[:6]) + ext}
		all[one.name], all[name+ext] = one, one
	}
	return all, nil
}

// addPlayground adds the script of the playground, which comes compressed.
func (s *Site) addPlayground(packed []byte) error {
	if packed == nil {
		return nil
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("reading the script of the playground: %w", err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("reading the script of the playground: %w", err)
	}
	sum := sha256.Sum256(body)
	one := &asset{kind: "text/javascript; charset=utf-8", body: body, packed: packed, name: "playground-" + hex.EncodeToString(sum[:6]) + ".js"}
	s.assets[one.name], s.assets["playground.js"] = one, one
	return nil
}

// assetLink returns the address of a file of the site.
func (s *Site) assetLink(name string) (string, error) {
	one := s.assets[name]
	if one == nil {
		return "", fmt.Errorf("there is no file %s", name)
	}
	return s.base + "/assets/" + one.name, nil
}

func (s *Site) serveAsset(ctx *fasthttp.RequestCtx, name string) {
	one := s.assets[name]
	if one == nil || one.name != name {
		ctx.Error("Not found", fasthttp.StatusNotFound)
		return
	}
	ctx.Response.Header.SetContentType(one.kind)
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=31536000, immutable")
	if one.packed == nil {
		ctx.SetBody(one.body)
		return
	}
	ctx.Response.Header.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if ctx.Request.Header.HasAcceptEncoding("gzip") {
		ctx.Response.Header.SetContentEncoding("gzip")
		ctx.SetBody(one.packed)
		return
	}
	ctx.SetBody(one.body)
}

// setHeaders sets what every answer of the site has: nothing runs or loads but what the
// site itself serves.
func setHeaders(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set(fasthttp.HeaderVary, "Cookie")
}

const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"
