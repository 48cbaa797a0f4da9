package match

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
)

func target(t testing.TB, raw string) *Target {
	t.Helper()
	compiled, err := CompileTarget(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return compiled
}

func TestTargetsAreTakenApart(t *testing.T) {
	for _, c := range []struct {
		raw, host, address string
		tls                bool
	}{
		{"http://up.example.com", "up.example.com", "up.example.com:80", false},
		{"https://up.example.com/x", "up.example.com", "up.example.com:443", true},
		{"ws://up:81", "up:81", "up:81", false},
		{"WSS://up", "up", "up:443", true},
		{"http://up:/x", "up", "up:80", false},
		{"http://[::1]/x", "[::1]", "[::1]:80", false},
		{"http://[::1]:8080/x", "[::1]:8080", "[::1]:8080", false},
	} {
		got, err := CompileTarget(c.raw)
		if err != nil || got.Host != c.host || got.Address != c.address || got.TLS != c.tls {
			t.Errorf("%s: %+v, %v", c.raw, got, err)
		}
	}
}

func TestTargetsThatCannotBeAskedAreRefused(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"", "must begin with http:// or https://"},
		{"up.example.com/x", "must begin with http:// or https://"},
		{"ftp://up", `scheme "ftp": use http or https`},
		{"http:up", "//"},
		{"http://", "has no host"},
		{"http://:80", "has no host"},
		{"http://user:hunter2@up", "user or password"},
		{"http://up/#top", "fragment"},
		{"http://up:0", "1 to 65535"},
		{"http://up:70000", "1 to 65535"},
		{"http://up:x", "is not a URL"},
		{"http://münchen.example", "xn--"},
		{"http://u p", "is not a URL"},
		{"http://up/%zz", "is not a URL"},
		{"http://up/a\r\nb", "is not a URL"},
		{"http://up/?a b", "percent-encoded"},
	} {
		_, err := CompileTarget(c.raw)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.raw, err, c.want)
		}
	}
	if _, err := CompileTarget("http://user:hunter2@u p"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error repeats the password: %v", err)
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct {
		target, rest, query string
		keep                bool
		want                string
	}{
		{"http://up", "/", "", false, "/"},
		{"http://up/", "/", "", false, "/"},
		{"http://up", "", "", false, "/"},
		{"http://up", "/x", "", false, "/x"},
		{"http://up/base", "/x/y/", "", false, "/base/x/y/"},
		{"http://up/base/", "/x", "", false, "/base/x"},
		{"http://up/base///", "///x//y", "", false, "/base/x//y"},
		{"http://up/base", "x", "", false, "/base/x"},
		{"http://up/base/", "/", "", false, "/base"},
		{"http://up/base/", "", "", false, "/base"},
		{"http://up/base/", "/", "", true, "/base/"},
		{"http://up/base/", "", "", true, "/base/"},
		{"http://up/base", "/", "", true, "/base"},
		{"http://up/base/", "/x", "", true, "/base/x"},
		{"http://up", "/", "", true, "/"},
		{"http://up/b", "/a%2Fb%20c", "", false, "/b/a%2Fb%20c"},
		{"http://up/a%2Fb", "/x", "", false, "/a%2Fb/x"},
		{"http://up/b", "/x", "q=1", false, "/b/x?q=1"},
		{"http://up/b?k=v", "/x", "q=1&r=%20", false, "/b/x?k=v&q=1&r=%20"},
		{"http://up/b?k=v", "/", "", false, "/b?k=v"},
		{"http://up?k=v", "/", "q", true, "/?k=v&q"},
	} {
		got := target(t, c.target).Join([]byte("kept"), []byte(c.rest), []byte(c.query), JoinOptions{DisableStripSlash: c.keep})
		if string(got) != "kept"+c.want {
			t.Errorf("%s + %q ? %q (keep %v) = %q, want %q behind what was there", c.target, c.rest, c.query, c.keep, got, c.want)
		}
	}
}

func TestJoinDoesNotAllocate(t *testing.T) {
	up, buf := target(t, "http://up/base/?k=v"), make([]byte, 0, 128)
	rest, query := []byte("/users/1"), []byte("q=1")
	if n := testing.AllocsPerRun(100, func() { buf = up.Join(buf[:0], rest, query, JoinOptions{}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzJoinKeepsTargetAndRest(f *testing.F) {
	f.Add("http://up/base/?k=v", []byte("/x/%2F"), []byte("q=1"), true)
	f.Add("http://up", []byte("//"), []byte(""), false)
	f.Fuzz(func(t *testing.T, raw string, original, query []byte, keep bool) {
		up, err := CompileTarget(raw)
		if err != nil {
			return
		}
		if _, err := Decode(nil, original); err != nil || bytes.ContainsAny(query, "? #\r\n") {
			return
		}
		got := up.Join(nil, Rest(original, 0), query, JoinOptions{DisableStripSlash: keep})
		path, joined, _ := strings.Cut(string(got), "?")
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \r\n\x00#") {
			t.Fatalf("%q + %q: path %q", raw, original, path)
		}
		if !strings.HasSuffix(joined, string(query)) {
			t.Fatalf("%q ? %q: query %q", raw, query, joined)
		}
		if tail := strings.TrimLeft(string(original), "/"); !strings.HasSuffix(path, tail) {
			t.Fatalf("%q + %q: path %q", raw, original, path)
		}
		u, err := url.Parse(raw)
		if err != nil || !strings.HasPrefix(path, strings.TrimRight(u.EscapedPath(), "/")) {
			t.Fatalf("%q + %q: path %q (%v)", raw, original, path, err)
		}
	})
}

func BenchmarkJoin(b *testing.B) {
	up, buf := target(b, "http://up/base/"), make([]byte, 0, 128)
	rest, query := []byte("/users/12345/orders"), []byte("page=2")
	b.ReportAllocs()
	for b.Loop() {
		buf = up.Join(buf[:0], rest, query, JoinOptions{})
	}
}
