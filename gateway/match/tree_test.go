package match

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A problem is an entry that was left out.
type problem struct {
	Entry int
	First int // the entry that is where it wants to be, or -1
	error
}

// New makes a tree of nothing but entries, which have different values.
func New[T comparable](entries []Entry[T]) (*Tree[T], []problem) {
	var empty *Tree[T]
	edit, problems := empty.Edit(), []problem(nil)
	for i, entry := range entries {
		if err := edit.Add(entry); err != nil {
			p := problem{i, -1, err}
			if taken, ok := errors.AsType[*TakenError[T]](err); ok {
				p.First = slices.IndexFunc(entries, func(one Entry[T]) bool { return one.Value == taken.Holder })
			}
			problems = append(problems, p)
		}
	}
	return done(edit), problems
}

func build(t testing.TB, entries ...Entry[string]) *Tree[string] {
	t.Helper()
	tree, problems := New(entries)
	for _, p := range problems {
		t.Errorf("entry %d: %v", p.Entry, p)
	}
	return tree
}

func at(paths ...string) []Entry[string] {
	entries := make([]Entry[string], len(paths))
	for i, p := range paths {
		entries[i] = Entry[string]{ListenPath: p, Value: p}
	}
	return entries
}

func TestListenPathsMatchOnSegmentBoundaries(t *testing.T) {
	for _, c := range []struct {
		listen  string
		matches []string
		others  []string
	}{
		{"/sample", []string{"/sample", "/sample/", "/sample/x", "/sample//x"}, []string{"/", "/samplefoo", "/Sample", "//sample", "/x/sample", "/sample%2Fx", ""}},
		{"/sample/", []string{"/sample", "/sample/", "/sample/x"}, []string{"/samplefoo", "/sampl"}},
		{"/a/b", []string{"/a/b", "/a/b/c"}, []string{"/a", "/a/", "/a/bc", "/a//b"}},
		{"/", []string{"/", "/x", "//", "/x/y"}, []string{"", "x"}},
		{"/a/{x}", []string{"/a/b", "/a/b/", "/a/b/c", "/a/%2F"}, []string{"/a", "/a/", "/a//b"}},
		{"/a/{x:[0-9]+}", []string{"/a/1", "/a/12/c"}, []string{"/a/1b", "/a/b1", "/a/"}},
		{"/a/{x:a|b}", []string{"/a/a", "/a/b"}, []string{"/a/ab", "/a/ax", "/a/xb"}},
		{"/a/{x:[^/]{2,3}}/z", []string{"/a/bc/z", "/a/bcd/z/"}, []string{"/a/b/z", "/a/bcde/z"}},
		{"/caf%C3%A9/a%2fb", []string{"/café/a%2Fb"}, []string{"/café/a/b"}},
	} {
		tree := build(t, at(c.listen)...)
		for _, path := range c.matches {
			if _, _, ok := tree.Find(nil, []byte(path), nil); !ok {
				t.Errorf("%s does not match %s", c.listen, path)
			}
		}
		for _, path := range c.others {
			if _, _, ok := tree.Find(nil, []byte(path), nil); ok {
				t.Errorf("%s matches %s", c.listen, path)
			}
		}
	}
}

func TestLongestListenPathWins(t *testing.T) {
	for _, c := range []struct {
		listen []string
		path   string
		want   string
	}{
		{[]string{"/", "/a", "/a/b"}, "/a/b/c", "/a/b"},
		{[]string{"/", "/a", "/a/b"}, "/a/c", "/a"},
		{[]string{"/", "/a", "/a/b"}, "/b", "/"},
		{[]string{"/a/{x}", "/a/b"}, "/a/b", "/a/b"},
		{[]string{"/a/{x}", "/a"}, "/a/b", "/a/{x}"},
		// A parameter counts as its slash: 2 for /{x}/b/c behind it against 3.
		{[]string{"/a/{x}/{y}", "/{x}/longer"}, "/a/longer/z", "/{x}/longer"},
		{[]string{"/{x}/longer", "/a/{x}/{y}"}, "/a/longer/z", "/{x}/longer"},
		{[]string{"/{x}/b", "/a/{y}"}, "/a/b", "/a/{y}"},
		{[]string{"/{x}/{y}/{z}", "/a/{x}"}, "/a/b/c", "/a/{x}"},
		{[]string{"/{x}", "/{y:[a-z]+}"}, "/a", "/{y:[a-z]+}"},
		{[]string{"/{x}", "/{y:[a-z]+}"}, "/1", "/{x}"},
		{[]string{"/{y:[a-z]+}", "/{x:[a-c]+}"}, "/a", "/{x:[a-c]+}"},
		{[]string{"/a/{x}/c", "/a"}, "/a/b/d", "/a"}, // back out of a dead end
	} {
		got, _, _ := build(t, at(c.listen...)...).Find(nil, []byte(c.path), nil)
		if got != c.want {
			t.Errorf("%v: %s goes to %q, want %q", c.listen, c.path, got, c.want)
		}
	}
}

func TestDomainsGoBeforeEntriesOfTheirLengthWithoutOne(t *testing.T) {
	tree := build(t,
		Entry[string]{Domain: "API.example.com", ListenPath: "/a", Value: "domain"},
		Entry[string]{Domain: "[2001:DB8::1]", ListenPath: "/", Value: "v6"},
		Entry[string]{Domain: "api.example.com.", ListenPath: "/d", Value: "dot"},
		Entry[string]{ListenPath: "/a/longer", Value: "anywhere"},
		Entry[string]{ListenPath: "/b", Value: "anywhere"},
	)
	for _, c := range []struct{ host, path, want string }{
		{"api.example.com", "/a", "domain"},
		{"Api.Example.COM:8080", "/a/longer", "anywhere"},
		{"Api.Example.COM:8080", "/a/b", "domain"},
		{"api.example.com.", "/a", "domain"},
		{"api.example.com.:80", "/d", "dot"},
		{"api.example.com", "/b", "anywhere"},
		{"api.example.com", "/c", ""},
		{"other.example.com", "/a", ""},
		{"other.example.com", "/a/longer", "anywhere"},
		{"xapi.example.com", "/a", ""},
		{"[2001:db8::1]:443", "/q", "v6"},
		{"[2001:db8::1", "/b", "anywhere"},
		{"", "/b", "anywhere"},
		{strings.Repeat("a", 300), "/b", "anywhere"},
	} {
		got, _, ok := tree.Find([]byte(c.host), []byte(c.path), nil)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s%s goes to %q, want %q", c.host, c.path, got, c.want)
		}
	}
}

func TestParametersTakeTheirSegments(t *testing.T) {
	tree := build(t, at("/{org}/apis/{api:[a-z0-9-]+}", "/plain")...)
	var params Params
	_, segments, ok := tree.Find(nil, []byte("/acme/apis/my-api/x"), &params)
	if !ok || segments != 3 || params.Len() != 2 {
		t.Fatalf("found %v, %d segments, %d parameters", ok, segments, params.Len())
	}
	org, _ := params.Get("org")
	api, _ := params.Get("api")
	if _, other := params.Get("other"); string(org) != "acme" || string(api) != "my-api" || other {
		t.Errorf("org %q, api %q", org, api)
	}
	tree.Find(nil, []byte("/plain"), &params)
	if params.Len() != 0 {
		t.Error("parameters of the request before are still there")
	}
	tree.Find(nil, []byte("/a/apis/b"), &params)
	tree.Find(nil, []byte("/none"), &params)
	if params.Len() != 0 {
		t.Error("parameters are there without a match")
	}
}

func TestMalformedEntriesAreReportedAndTheOthersServe(t *testing.T) {
	for _, c := range []struct{ domain, listen, want string }{
		{"", "", "is empty"},
		{"", "a", "must begin with a slash"},
		{"", "/a//b", "one slash between segments"},
		{"", "//", "one slash between segments"},
		{"", "/a b", "percent-encoded"},
		{"", "/a/../b", "dot segment"},
		{"", "/a%", "invalid percent escape"},
		{"", "/a?b", "percent-encoded"},
		{"", "/a/*", "leave the * out"},
		{"", "/a/{x", "without a closing one"},
		{"", "/a/x}", "without an opening one"},
		{"", "/v{x}", "whole segment"},
		{"", "/{a}{b}", "whole segment"},
		{"", "/{}", "parameter name"},
		{"", "/{1x}", "parameter name"},
		{"", "/{x:}", "expression after the colon is empty"},
		{"", "/{x:[}", "missing closing ]"},
		{"", "/{x:a)|(b}", "unexpected )"},
		{"", "/{x}/{x}", "appears twice"},
		{"", strings.Repeat("/{x}", 65), "at most 64"},
		{"", "/" + strings.Repeat("x", 5000), "at most 4096"},
		{"a.example.com:80", "/x", "without a port"},
		{"http://a.example.com", "/x", "host name alone"},
		{"{name}.example.com", "/x", "must not hold"},
		{"münchen.example", "/x", "xn--"},
		{".", "/x", "not a host name"},
		{"[::1", "/x", "not a host name"},
		{strings.Repeat("a.", 200), "/x", "at most 253"},
	} {
		tree, problems := New([]Entry[int]{{ListenPath: "/good", Value: 1}, {Domain: c.domain, ListenPath: c.listen}, {ListenPath: "/also", Value: 2}})
		if len(problems) != 1 || problems[0].Entry != 1 || problems[0].First != -1 || !strings.Contains(problems[0].Error(), c.want) {
			t.Errorf("%s%s: problems %v, want one about entry 1 with %q", c.domain, c.listen, problems, c.want)
			continue
		}
		for _, path := range []string{"/good", "/also"} {
			if _, _, ok := tree.Find([]byte("a.example.com"), []byte(path), nil); !ok {
				t.Errorf("%s%s took %s away", c.domain, c.listen, path)
			}
		}
	}
	var names strings.Builder
	for i := range MaxParams + 1 {
		fmt.Fprintf(&names, "/{p%d}", i)
	}
	if _, problems := New(at(names.String())); len(problems) != 1 || !strings.Contains(problems[0].Error(), "at most 16") {
		t.Errorf("17 parameters: %v", problems)
	}
}

func TestFirstOfTwoEntriesAtOnePlaceKeepsIt(t *testing.T) {
	for _, c := range []struct{ first, second string }{
		{"/a", "/a"}, {"/a", "/a/"}, {"/", "/"}, {"/a/{x}", "/a/{y}/"}, {"/{x:a+}", "/{y:a+}"}, {"/caf%C3%A9", "/café"},
	} {
		tree, problems := New([]Entry[int]{{ListenPath: "/other", Value: 9}, {ListenPath: c.first, Value: 1}, {ListenPath: c.second, Value: 2}})
		if len(problems) != 1 || problems[0].Entry != 2 || problems[0].First != 1 {
			t.Errorf("%s, %s: %v", c.first, c.second, problems)
		}
		path, _ := Decode(nil, []byte(strings.NewReplacer("{x}", "a", "{x:a+}", "a").Replace(c.first)))
		if got, _, _ := tree.Find(nil, path, nil); got != 1 {
			t.Errorf("%s, %s: %s goes to %d", c.first, c.second, path, got)
		}
	}
	if _, problems := New([]Entry[int]{{ListenPath: "/a"}, {Domain: "x", ListenPath: "/a"}, {Domain: "y", ListenPath: "/a"}, {ListenPath: "/{x:a}"}, {ListenPath: "/{x}"}}); len(problems) > 0 {
		t.Errorf("entries at different places: %v", problems)
	}
}

// reference finds by trying every entry, written from the rules alone.
func reference(entries []Entry[int], host, path string) (value int, ok bool) {
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	best := -1
	for i, e := range entries {
		if domain := strings.ToLower(e.Domain); domain != "" && domain != strings.ToLower(host) || !covers(e.ListenPath, path) {
			continue
		}
		if best < 0 || goesBefore(e, entries[best]) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	return entries[best].Value, true
}

// goesBefore is by length, then for the one with a domain, then by segments.
func goesBefore(a, b Entry[int]) bool {
	la, lb := lengthOf(a.ListenPath), lengthOf(b.ListenPath)
	if la != lb || (a.Domain == "") != (b.Domain == "") {
		return la > lb || la == lb && a.Domain != ""
	}
	return precedes(a.ListenPath, b.ListenPath)
}

func covers(listen, path string) bool {
	want := segmentsOf(listen)
	have := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(have) < len(want) {
		return false
	}
	for i, w := range want {
		switch expr, param := strings.CutPrefix(w, "{p:"); {
		case param && !regexp.MustCompile("^("+strings.TrimSuffix(expr, "}")+")$").MatchString(have[i]),
			w == "{p}" && have[i] == "",
			!param && w != "{p}" && w != have[i]:
			return false
		}
	}
	return true
}

func precedes(a, b string) bool {
	if la, lb := lengthOf(a), lengthOf(b); la != lb {
		return la > lb
	}
	return slices.CompareFunc(segmentsOf(a), segmentsOf(b), func(x, y string) int {
		if kx, ky := kindOf(x), kindOf(y); kx != ky || kx != 1 {
			return kx - ky
		}
		return strings.Compare(strings.TrimSuffix(x, "}"), strings.TrimSuffix(y, "}"))
	}) < 0
}

func segmentsOf(listen string) []string {
	if listen == "/" {
		return nil
	}
	return strings.Split(strings.Trim(listen, "/"), "/")
}

func lengthOf(listen string) (n int) {
	for _, s := range segmentsOf(listen) {
		n++
		if kindOf(s) == 0 {
			n += len(s)
		}
	}
	return n
}

func kindOf(segment string) int {
	switch {
	case segment == "{p}":
		return 2
	case strings.HasPrefix(segment, "{"):
		return 1
	}
	return 0
}

func TestFindAgreesWithTryingEveryEntry(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	for range 2000 {
		var entries []Entry[int]
		for i := range 1 + random.IntN(12) {
			listen := ""
			for j := range random.IntN(4) {
				parameter := pick("{p}", "{p:a+}", "{p:[ab]+}")
				listen += "/" + pick("a", "b", "ab", "abc", strings.Replace(parameter, "p", fmt.Sprint("p", j), 1))
			}
			if listen == "" || random.IntN(3) == 0 {
				listen += "/"
			}
			entries = append(entries, Entry[int]{Domain: pick("", "", "one", "TWO"), ListenPath: listen, Value: i})
		}
		tree, problems := New(entries)
		for _, p := range slices.Backward(problems) {
			entries = slices.Delete(entries, p.Entry, p.Entry+1)
		}
		anonymous := slices.Clone(entries) // the reference knows one parameter name
		for i := range anonymous {
			anonymous[i].ListenPath = regexp.MustCompile(`p\d`).ReplaceAllString(anonymous[i].ListenPath, "p")
		}
		for range 20 {
			host, path := pick("one", "two:80", "ONE", "three"), ""
			for range random.IntN(5) {
				path += "/" + pick("a", "b", "ab", "abc", "x", "")
			}
			if path == "" {
				path = "/"
			}
			want, wantOK := reference(anonymous, host, path)
			if got, _, ok := tree.Find([]byte(host), []byte(path), nil); got != want || ok != wantOK {
				t.Fatalf("%s%s goes to %d (%v), want %d (%v) of %v", host, path, got, ok, want, wantOK, entries)
			}
		}
	}
}

func TestFindDoesNotAllocate(t *testing.T) {
	tree := build(t, append(at("/", "/a/{x}/c", "/a/{y:[a-z]+}", "/{z}/{w}"), Entry[string]{Domain: "api.example.com", ListenPath: "/d"})...)
	var params Params
	for _, path := range []string{"/d", "/a/b/c", "/a/b", "/q/r", "/a/1"} {
		host, path := []byte("Api.Example.Com:8080"), []byte(path)
		if n := testing.AllocsPerRun(100, func() { tree.Find(host, path, &params) }); n != 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

// The worst tree for a look-up holds every mixture of text and parameters, and
// the worst path follows all of them to the end only to fail there.
func BenchmarkFindWorstCase(b *testing.B) {
	var entries []Entry[int]
	for mixture := range 1 << 12 {
		var listen strings.Builder
		for bit := range 12 {
			if mixture>>bit&1 == 0 {
				listen.WriteString("/a")
			} else {
				fmt.Fprintf(&listen, "/{p%d}", bit)
			}
		}
		entries = append(entries, Entry[int]{ListenPath: listen.String() + "/end"})
	}
	tree, _ := New(entries)
	path := bytes.Repeat([]byte("/a"), 2000)
	b.ReportAllocs()
	for b.Loop() {
		tree.Find(nil, path, nil)
	}
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 1_000, 100_000} {
		entries := make([]Entry[int], n)
		for i := range entries {
			entries[i] = Entry[int]{ListenPath: fmt.Sprintf("/team-%d/api-%d/", i%97, i), Value: i}
		}
		tree, _ := New(entries)
		paths := make([][]byte, min(n, 4096))
		for i := range paths {
			paths[i] = fmt.Appendf(nil, "%susers/12345", entries[i*7919%n].ListenPath)
		}
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			host, i := []byte("api.example.com:8080"), 0
			var params Params
			b.ReportAllocs()
			for b.Loop() {
				if _, _, ok := tree.Find(host, paths[i%len(paths)], &params); !ok {
					b.Fatal("not found")
				}
				i++
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	entries := make([]Entry[int], 100_000)
	for i := range entries {
		entries[i] = Entry[int]{ListenPath: fmt.Sprintf("/team-%d/api-%d/", i%97, i), Value: i}
	}
	b.ReportAllocs()
	for b.Loop() {
		New(entries)
	}
}
