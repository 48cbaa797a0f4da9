package match

import (
	"errors"
	"fmt"
	"testing"
)

func endpoints(t testing.TB, entries ...Endpoint[int]) *Endpoints[int] {
	t.Helper()
	for i := range entries {
		entries[i].Value = i
	}
	e, err := CompileEndpoints(entries)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTheFirstEntryThatTakesACallDecides(t *testing.T) {
	e := endpoints(t,
		Endpoint[int]{Path: "/users/{id}/keys", Method: "POST"},
		Endpoint[int]{Path: "/users", Method: "GET"},
		Endpoint[int]{Path: "{any}/keys"},
		Endpoint[int]{Path: "users/me"},
		Endpoint[int]{Path: "^/x(/|$)"},
		Endpoint[int]{Path: "/Case", Options: PatternOptions{IgnoreCase: true}},
		Endpoint[int]{Path: "/a%20b"},
		Endpoint[int]{Path: "/pre{id}"},
		Endpoint[int]{Path: "/files/*", Method: "GET"},
		Endpoint[int]{Path: "/", Method: "PATCH"},
	)
	for _, c := range []struct {
		method, path, full string
		want               int
	}{
		{"POST", "/users/1/keys", "", 0},
		{"GET", "/users/1/keys", "", 1},
		{"GET", "/users", "", 1},
		{"GET", "/users/", "", 1},
		{"GET", "/usersx", "", -1},
		{"POST", "/users/me", "", 3},
		{"POST", "/users/mex", "", -1},
		{"PUT", "/users/keys", "", 2},
		{"PUT", "/groups/keys/7", "", 2},
		{"GET", "/x", "", 4},
		{"GET", "/xy", "", -1},
		{"GET", "/cAsE/z", "", 5},
		{"GET", "/a b", "", 6},
		{"GET", "/prefix", "", 7},
		{"GET", "/pre", "", -1},
		{"GET", "/files/a/b", "", 8},
		{"HEAD", "/files/a/b", "", -1},
		{"PATCH", "/anything", "", 9},
		{"GET", "/", "", -1},
		{"GET", "", "", -1},
		{"get", "/users", "", -1},
		{"PUT", "/me", "/users/me", 3},
		{"PUT", "/a b", "/x/a b", 4}, // whichever entry stands first
		{"PUT", "/x", "/a b/x", 4},
	} {
		var full []byte
		if c.full != "" {
			full = []byte(c.full)
		}
		got, ok := e.Find([]byte(c.method), []byte(c.path), full)
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s %s (%s): entry %d, want %d", c.method, c.path, c.full, got, c.want)
		}
	}
}

func TestAnEntryThatIsNoPatternIsNamed(t *testing.T) {
	_, err := CompileEndpoints([]Endpoint[int]{{Path: "/a"}, {Path: "/{a"}})
	wrong, ok := errors.AsType[*EndpointError](err)
	if !ok || wrong.Index != 1 {
		t.Fatalf("got %v", err)
	}
}

func TestAnEmptyListTakesNothing(t *testing.T) {
	if _, ok := endpoints(t).Find([]byte("GET"), []byte("/"), []byte("/")); ok {
		t.Fatal("found something")
	}
}

// FuzzEndpointsAgreeWithTheirPatterns holds the list, which skips entries by
// their first segment, against one pattern after the other.
func FuzzEndpointsAgreeWithTheirPatterns(f *testing.F) {
	f.Add("/a", "/{x}/b", "c|d", "/a/b")
	f.Add("", "a", "/*", "//a")
	f.Add("/a/x", "/A", "/a", "/a/x")
	f.Add("/{x}", "/B%2fc/D", "/b", "/b%2Fc/d")
	f.Fuzz(func(t *testing.T, one, two, three, path string) {
		var list []Endpoint[int]
		var patterns []*Pattern
		for i, text := range []string{one, two, three} {
			opts := PatternOptions{IgnoreCase: i == 1}
			if p, err := CompilePattern(text, opts); err == nil {
				list = append(list, Endpoint[int]{Path: text, Options: opts})
				patterns = append(patterns, p)
			}
		}
		decoded, err := Decode(nil, []byte(path))
		if err != nil {
			return
		}
		got, ok := endpoints(t, list...).Find([]byte("GET"), decoded, nil)
		for i, p := range patterns {
			if p.Match(decoded) {
				if !ok || got != i {
					t.Fatalf("%q takes %q; the list found %d, %t", p, decoded, got, ok)
				}
				return
			}
		}
		if ok {
			t.Fatalf("entry %d was found for %q, which no pattern takes", got, decoded)
		}
	})
}

func manyEndpoints(b testing.TB, n int) *Endpoints[int] {
	list := make([]Endpoint[int], n)
	for i := range list {
		list[i].Path = fmt.Sprintf("/resource%d/{id}", i)
	}
	return endpoints(b, list...)
}

func TestFindingAnEndpointDoesNotAllocate(t *testing.T) {
	e := manyEndpoints(t, 100)
	method, path := []byte("GET"), []byte("/resource99/7")
	if n := testing.AllocsPerRun(100, func() { e.Find(method, path, path) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEndpoints(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := manyEndpoints(b, n)
			method, path := []byte("GET"), fmt.Appendf(nil, "/resource%d/7", n-1)
			b.ReportAllocs()
			for b.Loop() {
				e.Find(method, path, nil)
			}
		})
	}
}
