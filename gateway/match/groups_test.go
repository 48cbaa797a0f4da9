package match

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/testenv/race"
)

func spans(g *Groups) (all []int) {
	for i := range g.Len() {
		from, to, ok := g.Span(i)
		if !ok {
			from, to = -1, -1
		}
		all = append(all, from, to)
	}
	return all
}

// agree holds an expression against package regexp.
func agree(t *testing.T, text, subject string) {
	t.Helper()
	e, err := CompileGroups(text)
	if err != nil {
		return
	}
	want := regexp.MustCompile(text).FindStringSubmatchIndex(subject)
	var g Groups
	if found := e.Find(&g, []byte(subject)); found != (want != nil) {
		t.Fatalf("%q in %q: found is %t, want %v", text, subject, found, want)
	} else if !found {
		return
	}
	got := spans(&g)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%q in %q: got %v, want %v", text, subject, got, want)
		}
	}
}

func TestGroupsAreThoseOfTheStandardLibrary(t *testing.T) {
	for _, text := range []string{
		`(\w+)/(\w+)`, `^/users/(\d+)$`, `(a*)(a|b)*`, `(a|ab)(c|bcd)(d*)`, `((a)|b)+`, `(?:(a)|(b))+?x`, `\bfoo\b(.?)`, `(?i)FOO(?-i)B`,
		`(é+)|(.)`, `(?s)(.*)x`, `(?m)^b$`, `()`, `x*`, `(x)?(y)?z`, `[^/]+/(?P<name>\d{2,3})`, `a{0}(b)`, `\z`, `(a.){3}c`,
	} {
		for _, subject := range []string{
			"", "a", "ab", "abcd", "match/me?x=1", "/users/17", "/users/17/", "aaab", "abab", "bax", "a foo b", "foob", "FOOB",
			"ééx", "\xff\xfe", "a\nb\nc", "xyz", "yz", "z", "q/123", "axaxaxc", "x",
		} {
			agree(t, text, subject)
		}
	}
}

func TestExpressionsWithManyGroupsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("(a)", MaxGroups+1): "at most 31",
		"(":                                "missing closing",
		"":                                 "is empty",
		strings.Repeat("a", 4097):          "4096",
	} {
		if _, err := CompileGroups(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %q", text, err, want)
		}
	}
	if _, err := CompileGroups(strings.Repeat("(a)", MaxGroups)); err != nil {
		t.Error(err)
	}
}

func TestGroupsInTextsThatAreTooLongForTheSearch(t *testing.T) {
	long := strings.Repeat("a", maxVisited) + "b"
	agree(t, `(a+)(b)`, long)
	agree(t, `(a+)c`, long[:1000])
}

func TestFindingGroupsDoesNotAllocate(t *testing.T) {
	e, err := CompileGroups(`^/users/(\d+)/(.*)$`)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("/users/17/keys?x=1")
	if n := testing.AllocsPerRun(100, func() {
		var g Groups
		if !e.Find(&g, text) {
			t.Fatal("not found")
		}
	}); n != 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}

func FuzzGroupsAgreeWithTheStandardLibrary(f *testing.F) {
	f.Add(`(a|ab)(c|bcd)(d*)`, "abcd")
	f.Add(`^(\w*)\b(?:x|(y))$`, "zy")
	f.Fuzz(func(t *testing.T, text, subject string) {
		if utf8.ValidString(text) && len(text) < 100 && len(subject) < 200 {
			agree(t, text, subject)
		}
	})
}

func BenchmarkGroups(b *testing.B) {
	e, _ := CompileGroups(`^/users/(\d+)/(.*)$`)
	text := []byte("/users/17/keys?x=1")
	b.ReportAllocs()
	for b.Loop() {
		var g Groups
		e.Find(&g, text)
	}
}
