package match

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestDecodeKeepsWhatWouldReadDifferently(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"/", "/"},
		{"/a/b", "/a/b"},
		{"/%61%2Db", "/a-b"},
		{"/caf%c3%a9", "/café"},
		{"/a%2fb", "/a%2Fb"},
		{"/a%2Fb", "/a%2Fb"},
		{"/a%252fb", "/a%252fb"},
		{"/a%5cb", "/a%5Cb"},
		{"/a%0d%0ab", "/a%0D%0Ab"},
		{"/a%7fb", "/a%7Fb"},
		{"/a%20b%3F%23", "/a b?#"},
		{"//a///b//", "//a///b//"},
		{"/a.b/..c/d../...", "/a.b/..c/d../..."},
		{"/a;v=.", "/a;v=."},
	} {
		got, err := Decode([]byte("kept"), []byte(c.in))
		if err != nil || string(got) != "kept"+c.want {
			t.Errorf("Decode(%q) = %q, %v; want %q behind what was there", c.in, got, err, c.want)
		}
	}
}

func TestDecodeRefusesPathsThatTwoReadersCouldReadDifferently(t *testing.T) {
	for _, c := range []struct {
		in   string
		want error
	}{
		{"", ErrNotAbsolute},
		{"*", ErrNotAbsolute},
		{"a/b", ErrNotAbsolute},
		{"/a b", ErrByte},
		{"/a\x00", ErrByte},
		{"/a\r\nb", ErrByte},
		{"/a\x7f", ErrByte},
		{`/a\b`, ErrByte},
		{"/a?b", ErrByte},
		{"/a#b", ErrByte},
		{"/%", ErrEscape},
		{"/%2", ErrEscape},
		{"/%zz", ErrEscape},
		{"/%2g", ErrEscape},
		{"/%%41", ErrEscape},
		{"/a%00", ErrNUL},
		{"/.", ErrDotSegment},
		{"/..", ErrDotSegment},
		{"/a/./b", ErrDotSegment},
		{"/a/../b", ErrDotSegment},
		{"/a/..", ErrDotSegment},
		{"/a/%2e%2E/b", ErrDotSegment},
		{"/a/.%2e/b", ErrDotSegment},
		{"/a/..%2fb", ErrDotSegment},
		{"/a%2f../b", ErrDotSegment},
		{"/a/..%5cb", ErrDotSegment},
		{"/a/..;x=1/b", ErrDotSegment},
		{"/a/.;/b", ErrDotSegment},
		{"/a/%2e%2e%3bx/b", ErrDotSegment},
	} {
		got, err := Decode([]byte("kept"), []byte(c.in))
		if !errors.Is(err, c.want) || string(got) != "kept" {
			t.Errorf("Decode(%q) = %q, %v; want %v", c.in, got, err, c.want)
		}
	}
}

func TestRestBeginsWithOneSlash(t *testing.T) {
	for _, c := range []struct {
		path     string
		segments int
		want     string
	}{
		{"/", 0, "/"},
		{"/a", 0, "/a"},
		{"//a", 0, "/a"},
		{"/a", 1, "/"},
		{"/a/", 1, "/"},
		{"/a//", 1, "/"},
		{"/a/b", 1, "/b"},
		{"/a//b", 1, "/b"},
		{"/a%2Fb/c%2Fd/", 1, "/c%2Fd/"},
		{"/a/b/c", 2, "/c"},
		{"/a/b/c", 3, "/"},
		{"/a/b", 3, "/"},
	} {
		if got := Rest([]byte(c.path), c.segments); string(got) != c.want {
			t.Errorf("Rest(%q, %d) = %q, want %q", c.path, c.segments, got, c.want)
		}
	}
}

// The two readings of a path must cut at the same places: what is forwarded is
// what was judged.
func FuzzRestOfOriginalDecodesToRestOfDecoded(f *testing.F) {
	for _, path := range []string{"/", "/a/b", "//a//b", "/%61/b%2Fc/%2e.", "/a/%252F/x", "/a/..%2f", "/a%0a/\xff"} {
		f.Add([]byte(path), 1)
	}
	tree, problems := New([]Entry[int]{
		{ListenPath: "/a/{x}", Value: 1}, {ListenPath: "/{y:[a-z]+}", Value: 2}, {ListenPath: "/a", Value: 3}, {ListenPath: "/", Value: 4},
	})
	if len(problems) > 0 {
		f.Fatal(problems)
	}
	f.Fuzz(func(t *testing.T, original []byte, segments int) {
		decoded, err := Decode(nil, original)
		if err != nil {
			return
		}
		checkDecoded(t, decoded)
		if bytes.Count(original, []byte{'/'}) != bytes.Count(decoded, []byte{'/'}) {
			t.Fatalf("%q and its decoding %q have different slashes", original, decoded)
		}
		if segments >= 0 && segments < 100 {
			checkRest(t, original, decoded, segments)
		}
		var params Params
		_, covered, ok := tree.Find(nil, decoded, &params)
		if !ok {
			t.Fatalf("%q does not match /", decoded)
		}
		checkRest(t, original, decoded, covered)
		for i := range params.Len() {
			if _, value := params.At(i); len(value) == 0 || bytes.IndexByte(value, '/') >= 0 {
				t.Fatalf("%q: parameter took %q", decoded, value)
			}
		}
	})
}

func checkRest(t *testing.T, original, decoded []byte, segments int) {
	t.Helper()
	restOriginal, restDecoded := Rest(original, segments), Rest(decoded, segments)
	again, err := Decode(nil, restOriginal)
	if err != nil || !bytes.Equal(again, restDecoded) {
		t.Fatalf("%q after %d segments: original rest %q decodes to %q (%v), decoded rest is %q",
			original, segments, restOriginal, again, err, restDecoded)
	}
}

// checkDecoded holds a decoded path against a second, slower reading of the rules.
func checkDecoded(t *testing.T, decoded []byte) {
	t.Helper()
	for _, c := range decoded {
		if c < 0x20 || c == 0x7f || c == '\\' {
			t.Fatalf("%q holds byte %#x", decoded, c)
		}
	}
	text := strings.NewReplacer("%2F", "/", "%5C", "/").Replace(string(decoded))
	for name := range strings.SplitSeq(text, "/") {
		if name, _, _ = strings.Cut(name, ";"); name == "." || name == ".." {
			t.Fatalf("%q holds a dot segment", decoded)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, path := range []string{"/sample/users/12345/orders", "/sample/report.final.pdf", "/sample/caf%C3%A9/a%2Fb"} {
		b.Run(path, func(b *testing.B) {
			original, buf := []byte(path), make([]byte, 0, 64)
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = Decode(buf[:0], original)
			}
		})
	}
}
