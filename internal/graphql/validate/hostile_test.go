package validate

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// limits are those that a gateway parses with when nothing else is configured.
var limits = syntax.Limits{
	Bytes: 1 << 20, Tokens: 15_000, Depth: 64, ValueDepth: 32, Aliases: 1000, Directives: 500,
	Literals: 2000, Fragments: 200, Operations: 50,
}

func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(format, "#+", fmt.Sprint(i+1)), "#", fmt.Sprint(i)))
	}
	return b.String()
}

func nested(n int, open, inside, shut string) string {
	return strings.Repeat(open, n) + inside + strings.Repeat(shut, n)
}

// hostile are documents that small ones of their kind are harmless of.
func hostile() map[string]string {
	return map[string]string{
		"deep selection sets":             "{me" + nested(31, "{pets{owner", "{id}", "}}") + "}",
		"deep inline fragments":           "{me" + nested(60, "{...on Person", "{id}", "}") + "}",
		"wide and deep":                   "{me" + nested(31, "{"+repeat(31, "a#:name ")+"pets{owner", "{id}", "}}") + "}",
		"fragment chain":                  "{me{...F0}}" + repeat(199, "fragment F# on Person{...F#+ name}") + "fragment F199 on Person{id}",
		"fragment chain backwards":        "{me{...F0}}" + "fragment F199 on Person{id}" + repeat(199, "fragment F# on Person{id pets{owner{...F#+}}}"),
		"fragment cycle":                  "{me{...F0}}" + repeat(199, "fragment F# on Person{...F#+ name}") + "fragment F199 on Person{...F0}",
		"many fragment cycles":            "{me{...F0}}" + repeat(100, "fragment F# on Person{"+repeat(20, "...F# ")+"...F#}"),
		"complete fragment graph":         "{me{...F0}}" + complete(60),
		"exponential spreads":             "{me{...F0}}" + repeat(199, "fragment F# on Person{...F#+ ...F#+}") + "fragment F199 on Person{id}",
		"exponential spreads, nested":     "{me{...F0}}" + repeat(199, "fragment F# on Person{a:pets{owner{...F#+}} b:pets{owner{...F#+}}}") + "fragment F199 on Person{id}",
		"exponential empty expansion":     "{me{...F0}}" + repeat(14, "fragment F# on Person{...F#+ ...on Person{...F#+}}") + "fragment F14 on Person{id}",
		"unused fragments, variables":     "query(" + repeat(1500, "$v#:Int ") + "){me{id}}" + repeat(190, "fragment F# on Person{"+repeat(4, "pets(first:$v#){id}")+"}"),
		"operations, fragments, uses":     repeat(45, "query Q#($v:Int){me{...F0}}") + repeat(199, "fragment F# on Person{"+repeat(5, "a:pets(first:$v){id}")+"...F#+}") + "fragment F199 on Person{id}",
		"operations times undefined uses": repeat(45, "query Q#{me{...F0}}") + "fragment F0 on Person{" + repeat(1400, "pets(first:$v#){id}") + "}",
		"alias flood":                     "{me{" + repeat(999, "a#:name ") + "}}",
		"alias flood, same name":          "{me{" + repeat(999, "a:name ") + "}}",
		"field flood":                     "{me{" + strings.Repeat("name ", 14_900) + "}}",
		"unknown field flood":             "{me{" + repeat(14_000, "x# ") + "}}",
		"same field, other arguments":     "{me{" + repeat(1600, "pets(first:#){id}") + "}}",
		"same field, nested, equal":       "{me{" + strings.Repeat("pets{owner{pets{id}}}", 1300) + "}}",
		"same field, nested, each other":  "{me{" + repeat(900, "pets{owner{a#:id}}") + "}}",
		"doubling field sets":             "{" + doubled(8, "pets{owner{", "}}", "me{", "}") + "}",
		"doubling field sets, conflict":   "{" + doubled(8, "pets{owner{", "}}", "me{", "}") + " me{id:name}}",
		"exclusive parents":               "{node{" + repeat(490, "...on Dog{a:name}...on Cat{a:name(upper:true)}") + "}}",
		"conflicts everywhere":            "{node{" + repeat(490, "...on Dog{a:size}...on Cat{a:lives}") + "}}",
		"fragment pairs":                  "{me{" + repeat(199, "...F# ") + "}}" + repeat(199, "fragment F# on Person{"+repeat(6, "name pets{owner{id}}")+"}"),
		"fragment pairs, other fields":    "{me{" + repeat(199, "...F# ") + "}}" + repeat(199, "fragment F# on Person{pets{owner{"+repeat(4, "a: name id ")+"}}}"),
		"directive flood":                 "{me{name" + strings.Repeat("@once", 499) + "}}",
		"directive flood, spread":         "{me{name" + repeat(499, "@tag(name:\"x\")") + "}}",
		"unknown directives":              "{me{name" + repeat(499, "@x# ") + "}}",
		"argument flood":                  "{me{pets(" + repeat(1990, "first:# ") + "){id}}}",
		"argument flood, unknown":         "{me{pets(" + repeat(1990, "x#:# ") + "){id}}}",
		"argument flood, variables":       "query($v:Int){me{pets(" + repeat(3500, "first:$v ") + "){id}}}",
		"input field flood":               "{me{home(near:{" + repeat(1990, "x:# ") + "})}}",
		"input objects":                   "{me{home(near:" + nested(31, "{x:1 next:", "null", "}") + ")}}",
		"lists, nested":                   "{me{home(near:{any:" + nested(30, "[", repeat(1900, "# "), "]") + "})}}",
		"list of objects":                 "{me{home(at:[" + strings.Repeat("{x:1 y:2 tags:[\"a\"]}", 390) + "])}}",
		"list of wrong objects":           "{me{home(at:[" + strings.Repeat("{z:1}", 990) + "])}}",
		"long string":                     "{me{home(near:{x:\"" + strings.Repeat("é", 500_000) + "\"})}}",
		"long name":                       "{me{" + strings.Repeat("n", 1_000_000) + "}}",
		"long names, conflict":            "{me{a:" + strings.Repeat("n", 500_000) + " a:" + strings.Repeat("m", 500_000) + "}}",
		"long block string":               "{me{home(near:{x:\"\"\"" + strings.Repeat("\n  x", 250_000) + "\"\"\"})}}",
		"errors late on one line":         strings.Repeat(" ", 1_000_000) + "{me{" + repeat(3000, "x# ") + "}}",
		"errors after many lines":         strings.Repeat("\r\n", 500_000) + "{me{" + repeat(3000, "x# ") + "}}",
		"variable flood":                  "query(" + repeat(3700, "$v#:Int ") + "){me{id}}",
		"variable flood, same name":       "query(" + repeat(3700, "$v:Int ") + "){me{id}}",
		"variable flood, pairs":           "query(" + repeat(1800, "$v#:Int $v#:Int ") + "){me{id}}",
		"variables with long types":       "query(" + repeat(200, "$v#:"+nested(31, "[", "Int", "]")) + "){me{id}}",
		"variables, wrong type":           "query(" + repeat(950, "$v#:String ") + "){me{" + repeat(950, "pets(first:$v#){id}") + "}}",
		"introspection depth":             "{__schema{types{" + nested(28, "fields{type{", "name", "}}") + "}}}",
		"introspection, exponential":      "{__schema{types{...F0}}}" + repeat(199, "fragment F# on __Type{ofType{...F#+} a:ofType{...F#+}}") + "fragment F199 on __Type{name}",
		"introspection flood":             "{" + strings.Repeat("__schema{types{name}} ", 2100) + "}",
		"introspection in itself":         nested(60, "{__schema", "{x}", "}"),
		"subscription roots":              "subscription{" + repeat(999, "a#:renamed{id}") + "}",
		"subscription fragments":          "subscription{" + repeat(199, "...F# ") + "}" + repeat(199, "fragment F# on Subscription{"+strings.Repeat("...F0 ", 30)+" }"),
		"narrowing fragments":             "{node{" + repeat(700, "...on Pet{...on Node{...on Dog{id}}}") + "}}",
		"lists of variable size":          "query($n:Int){me{" + repeat(900, "a#:pets(first:$n){id}") + "}}",
		"anonymous operations":            repeat(50, "{me{id}}"),
		"operations of one name":          repeat(50, "query A{me{id}}"),
		"type definitions":                repeat(3000, "scalar S#\n"),
	}
}

// complete is fragments that each spread all later ones.
func complete(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "fragment F%d on Person{id", i)
		for j := i + 1; j < n; j++ {
			fmt.Fprintf(&b, " ...F%d", j)
		}
		b.WriteString("}")
	}
	return b.String()
}

// doubled is a set of two fields that differ in nothing but one name, each with
// such a set inside.
func doubled(n int, open, shut, first, last string) string {
	set := "id"
	for i := range n {
		set = fmt.Sprintf("x%d:id %s%s%s %s%s y%d:id%s", i, open, set, shut, open, set, i, shut)
		if len(set) > 60_000 {
			break
		}
	}
	return first + set + last
}

// cpu returns the processor time that this process has taken.
func cpu() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func TestHostileDocumentsAreJudgedInBoundedTimeAndMemory(t *testing.T) {
	const (
		runaway    = 500 * time.Millisecond // ten times what is promised: no noise makes that
		mostMemory = 16 << 20
	)
	s := loaded(t, petSchema)
	corpus := hostile()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range corpus {
			if !yield(name) {
				return
			}
		}
	}) {
		source := []byte(corpus[name])
		best, memory, verdict := time.Hour, uint64(0), ""
		for range 3 { // the machine may be busy
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := cpu()
			verdict = judge(s, source)
			best = min(best, cpu()-began)
			runtime.ReadMemStats(&after)
			memory = after.TotalAlloc - before.TotalAlloc
		}
		if strings.Contains(verdict, "limit on") || strings.Contains(verdict, "Syntax") {
			t.Errorf("%s: %s: what comes after parsing is not tried", name, verdict)
		}
		t.Logf("%-34s %7d bytes %9.3f ms %9d bytes allocated  %.90q", name, len(source), best.Seconds()*1000, memory, verdict)
		if best > runaway && !race.Enabled {
			t.Errorf("%s: took %v", name, best)
		}
		if memory > mostMemory {
			t.Errorf("%s: allocated %d bytes", name, memory)
		}
	}
}
