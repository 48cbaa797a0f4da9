package ui

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// pack returns a zip of files.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, content := range files {
		entry, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(entry, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func sample(t *testing.T, o Options) *UI {
	t.Helper()
	u, err := open(pack(t, map[string]string{
		"index.html":               `<html data-theme="system" data-base="/" data-version=""><script src="./assets/index-abcdefgh.js"></script>`,
		"routes.json":              `["/", "/apis", "/apis/$id", "/apis/$id/$tab"]`,
		"assets/index-abcdefgh.js": strings.Repeat("console.log('sluice');\n", 100),
		"assets/licenses.md":       "MIT",
	}), o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// get sends a GET, with headers in turn; nil: the UI did not answer.
func get(u *UI, path string, headers ...string) *fasthttp.Response {
	ctx := new(fasthttp.RequestCtx)
	ctx.Request.SetRequestURI(path)
	for i := 0; i < len(headers); i += 2 {
		ctx.Request.Header.Set(headers[i], headers[i+1])
	}
	if !u.Answer(ctx) {
		return nil
	}
	return &ctx.Response
}

const wantsHTML = "text/html,application/xhtml+xml,*/*;q=0.8"

func TestPagesAreAnsweredByTheirRoutes(t *testing.T) {
	u := sample(t, Options{})
	for path, status := range map[string]int{
		"/": 200, "/apis": 200, "/apis/": 200, "/apis/a%2Fb": 200, "/apis/x": 200, "/apis/x/limits": 200,
		"/apis/x/limits/deep": 404, "/nothing": 404, "/apis//limits": 404,
	} {
		got := get(u, path, "Accept", wantsHTML)
		if got == nil || got.StatusCode() != status {
			t.Errorf("%s: %v, want %d", path, got, status)
		} else if (len(got.Header.Peek("ETag")) > 0) != (status == 200) {
			t.Errorf("%s: entity tag %q with status %d", path, got.Header.Peek("ETag"), status)
		}
	}
	for _, path := range []string{"/api/apis", "/portal/", "/metrics", "/healthz", "/assets/none.js", "/assets/"} {
		if got := get(u, path, "Accept", wantsHTML); got != nil {
			t.Errorf("%s was answered by the UI: %v", path, got)
		}
	}
	if got := get(u, "/apis", "Accept", "application/json"); got != nil {
		t.Errorf("a caller that wants JSON got %v", got)
	}
}

func TestThePageSaysBaseThemeAndVersion(t *testing.T) {
	u := sample(t, Options{Base: "/sluice/", Version: `1.2"3`})
	got := string(get(u, "/", "Accept", wantsHTML, "Cookie", "theme=dark").Body())
	want := `<html data-theme="dark" data-base="/sluice/" data-version="1.2&#34;3"><script src="/sluice/assets/index-abcdefgh.js"></script>`
	if got != want {
		t.Errorf("the page is\n%s, want\n%s", got, want)
	}
	if got := string(get(u, "/", "Accept", wantsHTML, "Cookie", `theme="><script>`).Body()); !strings.Contains(got, `data-theme="system"`) {
		t.Errorf("with an unknown theme the page is %s", got)
	}
}

func TestABasePathIsRemoved(t *testing.T) {
	for address, base := range map[string]string{"": "/", "https://a.example": "/", "https://a.example/sluice": "/sluice/", "https://a.example/x/y/": "/x/y/"} {
		if got := BasePath(address); got != base {
			t.Errorf("the base path of %q is %q, want %q", address, got, base)
		}
	}
	u := sample(t, Options{Base: "/sluice/"})
	for path, want := range map[string]string{"/sluice/apis/a%2Fb": "/apis/a%2Fb", "/sluice/": "/", "/apis": "/apis", "/sluicegate": "/sluicegate"} {
		ctx := new(fasthttp.RequestCtx)
		ctx.Request.SetRequestURI(path)
		if u.Strip(ctx); string(ctx.URI().PathOriginal()) != want {
			t.Errorf("%s became %s, want %s", path, ctx.URI().PathOriginal(), want)
		}
	}
}

func TestPagesAreRevalidatedAndAssetsKept(t *testing.T) {
	u := sample(t, Options{})
	page := get(u, "/", "Accept", wantsHTML)
	etag := string(page.Header.Peek("ETag"))
	if again := get(u, "/apis", "Accept", wantsHTML, "If-None-Match", etag); again.StatusCode() != 304 || len(again.Body()) > 0 {
		t.Errorf("a page that the caller has: %v", again)
	}
	if other := get(u, "/", "Accept", wantsHTML, "If-None-Match", etag, "Cookie", "theme=dark"); other.StatusCode() != 200 {
		t.Errorf("a page of another theme: %v", other)
	}
	if vary := string(page.Header.Peek("Vary")); !strings.Contains(vary, "Cookie") && !strings.Contains(page.Header.String(), "Vary: Cookie") {
		t.Errorf("Vary is %q", vary)
	}
	for path, want := range map[string]string{"/assets/index-abcdefgh.js": "public, max-age=31536000, immutable", "/assets/licenses.md": "no-cache"} {
		if got := string(get(u, path).Header.Peek("Cache-Control")); got != want {
			t.Errorf("%s: Cache-Control is %q, want %q", path, got, want)
		}
	}
}

func TestAssetsAreAnsweredCompressedAndPlain(t *testing.T) {
	u := sample(t, Options{})
	plain := get(u, "/assets/index-abcdefgh.js")
	if want := strings.Repeat("console.log('sluice');\n", 100); string(plain.Body()) != want {
		t.Errorf("without compression the asset is %q", plain.Body())
	}
	packed := get(u, "/assets/index-abcdefgh.js", "Accept-Encoding", "br, gzip")
	if got := string(packed.Header.Peek("Content-Encoding")); got != "gzip" {
		t.Fatalf("Content-Encoding is %q", got)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed.Body()))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r) // checks checksum and length, too
	if err != nil || !bytes.Equal(content, plain.Body()) {
		t.Errorf("decompressed: %v, %d bytes", err, len(content))
	}
}

func TestPagesHaveAStrictPolicy(t *testing.T) {
	got := get(sample(t, Options{}), "/", "Accept", wantsHTML)
	for name, want := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-cache",
	} {
		if have := string(got.Header.Peek(name)); have != want {
			t.Errorf("%s is %q, want %q", name, have, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error("the policy permits what is unsafe")
	}
}

func TestWithoutAZipThereIsAPlainPage(t *testing.T) {
	u, err := open(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := get(u, "/", "Accept", wantsHTML)
	if got == nil || got.StatusCode() != 200 || !strings.Contains(string(got.Body()), "make ui") {
		t.Errorf("the plain page is %v", got)
	}
}

func TestTheZipIsOfItsSources(t *testing.T) {
	packed, err := embedded.ReadFile(zipName)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := archive.Open(hashName)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	have, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	want, err := SourceHash(os.DirFS("web"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(have)) != want {
		t.Error("admin/ui/web has changed since admin/ui/ui.zip was built: run make ui")
	}
}

// What the first page may load, compressed.
const (
	mostScripts = 160 << 10
	mostStyles  = 16 << 10
	mostFiles   = 8 // with the HTML
)

func TestTheFirstPageIsSmall(t *testing.T) {
	packed, err := embedded.ReadFile(zipName)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	entries := make(map[string]*zip.File)
	for _, entry := range archive.File {
		entries[entry.Name] = entry
	}
	// The page names files, and scripts name those that they import at once: import(…) is
	// for later. A chunk of the page home would be loaded as well.
	first := map[string]bool{indexName: true}
	named := regexp.MustCompile(`(?:(?:src|href)="\./assets/|(?:from|import)"\./)([\w.-]+)"`)
	waiting := []string{indexName}
	for name := range entries {
		if strings.HasPrefix(name, assetsDir+"home-") {
			waiting, first[name] = append(waiting, name), true
		}
	}
	for len(waiting) > 0 {
		entry := entries[waiting[0]]
		if entry == nil {
			t.Fatalf("%s is not in the zip", waiting[0])
		}
		waiting = waiting[1:]
		text, err := readEntry(entry)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range named.FindAllSubmatch(text, -1) {
			if name := assetsDir + string(found[1]); !first[name] {
				waiting, first[name] = append(waiting, name), true
			}
		}
	}
	sizes := make(map[string]uint64)
	for name := range first {
		sizes[path.Ext(name)] += entries[name].CompressedSize64
	}
	t.Logf("%d files, compressed: %v", len(first), sizes)
	if sizes[".js"] < 50<<10 || sizes[".css"] == 0 {
		t.Fatalf("of the first page are %v: %v", first, sizes)
	}
	if sizes[".js"] > mostScripts || sizes[".css"] > mostStyles || len(first) > mostFiles {
		t.Errorf("the first page loads %d bytes of scripts (at most %d), %d of styles (at most %d) and %d files (at most %d): %v",
			sizes[".js"], mostScripts, sizes[".css"], mostStyles, len(first), mostFiles, first)
	}
}

func TestPagesAndServerShareNoPath(t *testing.T) {
	index, err := os.ReadFile("web/src/pages/index.ts")
	if err != nil {
		t.Fatal(err)
	}
	routes, err := Routes(string(index))
	if err != nil || len(routes) < 3 {
		t.Fatalf("%v, %v", routes, err)
	}
	if _, err := Routes(`{ paths: ['/api/x'] }`); err == nil {
		t.Error("a page below /api is accepted")
	}
	if _, err := Routes(`nothing`); err == nil {
		t.Error("a list without pages is accepted")
	}
}
