// Package ui serves the management UI: the HTML of its pages, scripts and styles, from
// one zip in the program. `make ui` makes the zip from admin/ui/web.
package ui

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// embedded holds plain.html and, unless this is a build without a UI, ui.zip: a pattern
// of its own for the zip would not compile without one.
//
//go:embed *.[hz]*
var embedded embed.FS

// Names within the zip.
const (
	zipName    = "ui.zip"
	indexName  = "index.html"
	routesName = "routes.json"
	hashName   = "SOURCE_HASH"
	assetsDir  = "assets/"
)

// The appearances that a caller may choose by the cookie theme.
var themes = []string{"system", "light", "dark"}

// A UI answers requests for the pages of the management UI. Make one with New.
type UI struct {
	pages  map[string]*file // the HTML by theme
	assets map[string]*file // by path below /assets/
	routes []string         // patterns of the pages: /apis/$id
	base   string           // with a slash at both ends
}

// Options say what is written into the HTML.
type Options struct {
	Base    string // path below which browsers reach the admin, with a slash at both ends; "": "/"
	Version string // of the program
}

// New returns the UI of the zip in the program. Without a zip it has one plain page.
func New(o Options) (*UI, error) {
	packed, err := embedded.ReadFile(zipName)
	if errors.Is(err, fs.ErrNotExist) {
		packed = nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the embedded UI: %w", err)
	}
	return open(packed, o)
}

// open returns the UI of a packed zip; of an empty one, the plain page.
func open(packed []byte, o Options) (*UI, error) {
	if o.Base == "" {
		o.Base = "/"
	}
	u := &UI{pages: make(map[string]*file), assets: make(map[string]*file), base: o.Base}
	if len(packed) == 0 {
		page, err := embedded.ReadFile("plain.html")
		if err != nil {
			return nil, fmt.Errorf("reading the plain page: %w", err)
		}
		u.routes = []string{"/"}
		return u, u.addPages(string(page), o)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", zipName, err)
	}
	for _, entry := range archive.File {
		if err := u.add(entry, o); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", zipName, entry.Name, err)
		}
	}
	if len(u.pages) == 0 || len(u.routes) == 0 {
		return nil, fmt.Errorf("%s lacks %s or %s", zipName, indexName, routesName)
	}
	return u, nil
}

// add takes one entry of the zip.
func (u *UI) add(entry *zip.File, o Options) error {
	path, isAsset := strings.CutPrefix(entry.Name, assetsDir)
	if isAsset {
		f, err := packedFile(entry)
		if err == nil {
			f.kind, f.immutable = mediaType(path), hashed.MatchString(path)
			u.assets[path] = f
		}
		return err
	}
	if entry.Name != indexName && entry.Name != routesName {
		return nil
	}
	text, err := readEntry(entry)
	if err != nil {
		return err
	}
	if entry.Name == indexName {
		return u.addPages(string(text), o)
	}
	return json.Unmarshal(text, &u.routes)
}

// addPages writes base path, theme and version into the HTML, once for each theme.
func (u *UI) addPages(page string, o Options) error {
	base := html.EscapeString(o.Base)
	for _, theme := range themes {
		text := strings.NewReplacer(
			`data-base="/"`, `data-base="`+base+`"`,
			`data-theme="system"`, `data-theme="`+theme+`"`,
			`data-version=""`, `data-version="`+html.EscapeString(o.Version)+`"`,
			`"./assets/`, `"`+base+`assets/`,
		).Replace(page)
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		u.pages[theme] = &file{plain: []byte(text), gzip: packed.Bytes(), kind: "text/html; charset=utf-8", etag: etagOf([]byte(text))}
	}
	return nil
}

func etagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// policy permits what the admin itself serves, and nothing else. The HTML has neither
// inline scripts nor inline styles.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"

// permissions closes what browsers can do for pages but the clipboard.
const permissions = "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), hid=(), idle-detection=(), local-fonts=(), magnetometer=(), microphone=(), midi=(), payment=(), picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()"

// Answer answers a GET or HEAD for an asset, or for a page where the caller accepts HTML:
// with 404 if the path is no page. It reports whether it answered.
func (u *UI) Answer(ctx *fasthttp.RequestCtx) bool {
	if !ctx.IsGet() && !ctx.IsHead() {
		return false
	}
	path := string(ctx.URI().PathOriginal()) // a %2F is part of a segment
	if name, ok := strings.CutPrefix(path, "/"+assetsDir); ok {
		asset := u.assets[name]
		if asset == nil {
			return false
		}
		asset.write(ctx)
		return true
	}
	if reserved(path) || !bytes.Contains(ctx.Request.Header.Peek(fasthttp.HeaderAccept), []byte("text/html")) {
		return false
	}
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", policy)
	h.Set("Permissions-Policy", permissions)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	page := u.pages[string(ctx.Request.Header.Cookie("theme"))]
	if page == nil {
		page = u.pages[themes[0]]
	}
	known := u.isPage(path)
	if !known { // its answer is not the page's that has the entity tag
		ctx.Request.Header.Del(fasthttp.HeaderIfNoneMatch)
	}
	page.write(ctx)
	h.Add(fasthttp.HeaderVary, "Cookie, Accept")
	if !known {
		ctx.SetStatusCode(fasthttp.StatusNotFound)
		h.Del(fasthttp.HeaderETag)
	}
	return true
}

// Strip removes the base path from a request: some proxies leave it there, others take
// it away.
func (u *UI) Strip(ctx *fasthttp.RequestCtx) {
	if u.base == "/" {
		return
	}
	path := ctx.URI().PathOriginal()
	if rest, ok := bytes.CutPrefix(path, []byte(u.base)); ok {
		ctx.URI().SetPathBytes(append([]byte{'/'}, rest...))
	}
}

// BasePath returns the path of a URL with a slash at both ends.
func BasePath(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || strings.Trim(parsed.EscapedPath(), "/") == "" {
		return "/"
	}
	return "/" + strings.Trim(parsed.EscapedPath(), "/") + "/"
}

// Prefixes are the first segments of paths that are never pages.
var Prefixes = []string{"api", "oauth", "portal", "assets", "health", "healthz", "live", "ready", "readyz", "metrics"}

// reserved reports whether a path belongs to the server, and never to a page.
func reserved(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains(Prefixes, first)
}

// isPage reports whether a path is that of a page.
func (u *UI) isPage(path string) bool {
	for _, route := range u.routes {
		if matches(route, path) {
			return true
		}
	}
	return false
}

// matches reports whether a path fits a pattern, whose segments that begin with $ stand
// for any one segment.
func matches(pattern, path string) bool {
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	wants, has := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(wants) != len(has) {
		return false
	}
	for i, want := range wants {
		if want != has[i] && (!strings.HasPrefix(want, "$") || has[i] == "") {
			return false
		}
	}
	return true
}
