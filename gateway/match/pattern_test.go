package match

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/pattern"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern string
		opts    PatternOptions
		matches []string
		others  []string
	}{
		{"/admin", PatternOptions{}, []string{"/admin", "/admin/", "/admin/x"}, []string{"/adminx", "/x/admin", "/Admin", "/"}},
		{"/admin/", PatternOptions{}, []string{"/admin", "/admin/x"}, []string{"/adminx"}},
		{"admin", PatternOptions{}, []string{"/admin", "/admin/x"}, []string{"/adminx", "/x/admin"}},
		{"/", PatternOptions{}, []string{"/", "/x"}, nil},
		{"/file.json", PatternOptions{}, []string{"/file.json"}, []string{"/fileXjson"}},
		{"/a%20b%2fc", PatternOptions{}, []string{"/a b%2Fc"}, []string{"/a b/c"}},
		{"/a b", PatternOptions{}, []string{"/a b/c"}, nil},
		{"/odata/$metadata", PatternOptions{}, []string{"/odata/$metadata"}, []string{"/odata/"}},
		{"/users/{id}", PatternOptions{}, []string{"/users/1", "/users/1/", "/users/1/x"}, []string{"/users", "/users/", "/x/users/1"}},
		{"/users/{id}/edit", PatternOptions{}, []string{"/users/1/edit"}, []string{"/users/1/2/edit", "/users/1/editor"}},
		{"/users/{id:[0-9]+}", PatternOptions{}, []string{"/users/1"}, []string{"/users/x", "/users/1x"}},
		{"/a/{x}/{y}", PatternOptions{}, []string{"/a/b/c", "/a/b/c/d"}, []string{"/a/b/", "/a//c"}},
		{"/a/{x}/*", PatternOptions{}, []string{"/a/b/", "/a/b/c/d"}, []string{"/a/b", "/a//c"}},
		{"/a/{x}.json", PatternOptions{}, []string{"/a/b.json"}, []string{"/a/b.jsonx", "/a/b"}},
		{"/a/v{x}", PatternOptions{}, []string{"/a/v1"}, []string{"/a/v", "/a/v/1"}},
		{"/a/{x}{y}", PatternOptions{}, []string{"/a/bc"}, []string{"/a/b"}},
		{"{a}/b", PatternOptions{}, []string{"/x/b"}, []string{"/b"}},
		{"/files/*", PatternOptions{}, []string{"/files/", "/files/a", "/files/a/b"}, []string{"/files", "/filesx", "/x/files/a"}},
		{"/files/*/raw", PatternOptions{}, []string{"/files/a/raw", "/files/a/b/raw/x"}, []string{"/files/raw", "/files/a/rawx"}},
		{"/*", PatternOptions{}, []string{"/", "/x/y"}, nil},
		{"/Admin/{x}", PatternOptions{IgnoreCase: true}, []string{"/aDMIN/1"}, []string{"/adminx/1"}},
		{"/Admin", PatternOptions{IgnoreCase: true}, []string{"/admin", "/ADMIN/x"}, []string{"/adminx"}},
		{"admin", PatternOptions{Unanchored: true}, []string{"/x/admins", "/admin"}, []string{"/Admin"}},
		{"/a/{x}/b", PatternOptions{Unanchored: true}, []string{"/z/a/1/bc"}, []string{"/a/b"}},
		{"^/admin$", PatternOptions{}, []string{"/admin"}, []string{"/admin/", "/x/admin"}},
		{"/(admin|root)", PatternOptions{}, []string{"/x/admin", "/rooted"}, []string{"/user"}},
		{"/v[0-9]/{id}$", PatternOptions{}, []string{"/v1/x", "/a/v1/x"}, []string{"/v1/x/y"}},
		{`/v\d{2}/x`, PatternOptions{}, []string{"/v12/x"}, []string{"/v1/x"}},
		{`/a\{b\}`, PatternOptions{}, []string{"/a{b}"}, []string{"/ab"}},
		{"/a%2Bb", PatternOptions{}, []string{"/a+b"}, []string{"/aab"}},
		{"/ADMIN|/root", PatternOptions{IgnoreCase: true}, []string{"/admin", "/ROOT"}, nil},
	} {
		p, err := CompilePattern(c.pattern, c.opts)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		checkPattern(t, p, c.matches, c.others)
	}
}

func checkPattern(t *testing.T, p *Pattern, matches, others []string) {
	t.Helper()
	for _, path := range matches {
		if !p.Match([]byte(path)) {
			t.Errorf("%s does not match %s", p, path)
		}
	}
	for _, path := range others {
		if p.Match([]byte(path)) {
			t.Errorf("%s matches %s", p, path)
		}
	}
}

func TestExpressionsAreFoundAnywhere(t *testing.T) {
	for _, c := range []struct {
		expr            string
		matches, others []string
	}{
		{"/users", []string{"/users", "/users2", "/admin/users"}, []string{"/user"}},
		{"^/users(/|$)", []string{"/users", "/users/1"}, []string{"/users2", "/admin/users"}},
		{"^/a/.{2}$", []string{"/a/xy"}, []string{"/a/x"}},
		{".*", []string{"/", "/x"}, nil},
	} {
		p, err := CompileExpression(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		checkPattern(t, p, c.matches, c.others)
	}
}

func TestMalformedPatternsAreRefused(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{"", "is empty"},
		{"/" + strings.Repeat("x", 5000), "at most 4096"},
		{"/a/{x", "without a closing one"},
		{"/a[", "missing closing ]"},
		{"/c++", "nested repetition"},
		{"*", "repetition operator"},
		{"/{x:a)|(b}", "{x}: "},
	} {
		if p, err := CompilePattern(c.pattern, PatternOptions{}); p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, %v; want %q", c.pattern, p, err, c.want)
		}
	}
	for _, expr := range []string{"", "("} {
		if p, err := CompileExpression(expr); p != nil || err == nil {
			t.Errorf("%q: %v, %v", expr, p, err)
		}
	}
}

func TestMatchingAPatternDoesNotAllocate(t *testing.T) {
	path := []byte("/users/12345/orders")
	for _, text := range []string{"/users", "/users/{id}/orders", "/users/*", "/(users|groups)/[0-9]+$"} {
		p, err := CompilePattern(text, PatternOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { p.Match(path) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

// A path entry without placeholders is a prefix on segment boundaries, however
// it is compiled.
func FuzzPatternsAgreeWithTheirPlainReading(f *testing.F) {
	f.Add("/admin", []byte("/admin/x"))
	f.Add("/a/{x}/*", []byte("/a/b/c"))
	f.Add("^/a{2,3}$", []byte("/aa"))
	f.Add(`/\{`, []byte("/{"))
	f.Fuzz(func(t *testing.T, text string, path []byte) {
		decoded, err := Decode(nil, path)
		if err != nil {
			return
		}
		p, err := CompilePattern(text, PatternOptions{})
		if checked := pattern.Check(text); (checked == nil) != (err == nil) {
			t.Fatalf("%q: definitions say %v, compiling says %v", text, checked, err)
		}
		if err != nil {
			return
		}
		got := p.Match(decoded)
		loose, err := CompilePattern(text, PatternOptions{IgnoreCase: true})
		if err == nil && got && !loose.Match(decoded) {
			t.Fatalf("%q matches %q, but not without regard to case", text, decoded)
		}
		if slow, err := regexp.Compile(`\A` + pathExpressionOf(text)); err == nil && p.expr == nil && slow.Match(decoded) != got {
			t.Fatalf("%q on %q: %v, but %s says otherwise", text, decoded, got, slow)
		}
		if strings.ContainsAny(text, `{}^|()[]+?\*$%`) {
			return
		}
		want := "/" + strings.TrimRight(strings.TrimPrefix(text, "/"), "/")
		if want == "/" {
			want = ""
		}
		if plain := string(decoded) == want || strings.HasPrefix(string(decoded), want+"/"); plain != got {
			t.Fatalf("%q on %q: %v", text, decoded, got)
		}
	})
}

func pathExpressionOf(text string) string {
	parts, _, _ := pattern.Parse(text)
	parts = anchorEnds(parts)
	if expr := pathExpression(parts); strings.HasSuffix(expr, pattern.AllTheRest) {
		return expr
	}
	return pathExpression(parts) + `(?:/|\z)`
}

func BenchmarkPattern(b *testing.B) {
	path := []byte("/users/12345/orders")
	for _, text := range []string{"/users", "/users/{id}/orders", "/(users|groups)/[0-9]+/orders$"} {
		p, err := CompilePattern(text, PatternOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Match(path)
			}
		})
	}
}
