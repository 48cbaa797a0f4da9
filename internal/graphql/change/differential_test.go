package change

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv"
)

// author writes schemas that have much in common.
type author struct {
	*rand.Rand
	b strings.Builder
}

func (a *author) chance(percent int) bool { return a.IntN(100) < percent }

func (a *author) wrapped(names ...string) string {
	name := names[a.IntN(len(names))]
	switch a.IntN(8) {
	case 0:
		return name + "!"
	case 1:
		return "[" + name + "]"
	case 2:
		return "[" + name + "!]"
	case 3:
		return "[" + name + "!]!"
	}
	return name
}

// inputs writes arguments or input fields; the first is always there.
func (a *author) inputs() string {
	var all []string
	for i := range 3 {
		if i > 0 && !a.chance(60) {
			continue
		}
		typ, byDefault := a.wrapped("Int", "E", "Int"), ""
		if strings.HasPrefix(typ, "Int") && a.chance(40) {
			byDefault = fmt.Sprintf(" = %d", a.IntN(2))
		}
		all = append(all, fmt.Sprintf("x%d: %s%s", i, typ, byDefault))
	}
	return strings.Join(all, " ")
}

func (a *author) fields() string {
	all := []string{"id: ID"}
	for i := range 4 {
		if !a.chance(70) {
			continue
		}
		args := ""
		if a.chance(50) {
			args = "(" + a.inputs() + ")"
		}
		all = append(all, fmt.Sprintf("f%d%s: %s", i, args, a.wrapped("Int", "String", "A", "U", "I", "E")))
	}
	return strings.Join(all, " ")
}

// some returns part of a list, never nothing.
func (a *author) some(separator string, from ...string) string {
	var all []string
	for _, one := range from {
		if a.chance(60) {
			all = append(all, one)
		}
	}
	if all == nil {
		all = from[:1]
	}
	return strings.Join(all, separator)
}

func (a *author) schema() string {
	a.b.Reset()
	write := func(format string, args ...any) { fmt.Fprintf(&a.b, format+"\n", args...) }
	implements := func() string {
		if a.chance(50) {
			return " implements I"
		}
		return ""
	}
	write("type Query { %s }", a.fields())
	write("interface I { id: ID }")
	write("type A%s { %s }", implements(), a.fields())
	write("type B%s { %s }", implements(), a.fields())
	write("union U = %s", a.some(" | ", "A", "B"))
	write("enum E { V %s }", a.some(" ", "W", "X", "Y"))
	write("input In { %s }", a.inputs())
	write("%s Kind { x: Int }", []string{"type", "input", "interface"}[a.IntN(3)])
	if a.chance(70) {
		write("type C { a: Int }")
	}
	if a.chance(70) {
		repeatable := ""
		if a.chance(50) {
			repeatable = " repeatable"
		}
		write("directive @d(%s)%s on %s", a.inputs(), repeatable, a.some(" | ", "FIELD", "QUERY", "INLINE_FRAGMENT"))
	}
	return a.b.String()
}

// beyond are the kinds of changes that graphql-js does not look for.
var beyond = []Kind{RootTypeChanged, OneOfChanged, InputFieldDefaultChanged, DirectiveArgumentChanged, DirectiveArgumentHasDefault}

// comparable is a change as both sides word it. Layouts of default values differ,
// and so does what we say of one that is gone while the argument stays non-null:
// operations without the argument become invalid, which graphql-js takes for
// dangerous only.
func comparable(level Level, message string) string {
	if at := strings.Index(message, " has changed defaultValue from "); at >= 0 {
		message = message[:at] + " has changed defaultValue"
	}
	if subject, ok := strings.CutSuffix(message, " lost its default value and has to be given now."); ok {
		level, message = Dangerous, subject+" defaultValue was removed."
	}
	return string(level) + " " + strings.ReplaceAll(message, "@", "")
}

func TestChangesAreThoseThatTheReferenceFinds(t *testing.T) {
	oracle := testenv.GraphQLJS(t)
	found := make(map[Kind]int)
	a := &author{Rand: rand.New(rand.NewPCG(7, 7))}
	for range 400 {
		old, new := a.schema(), a.schema()
		var said map[string][]struct{ Description string }
		answer := oracle.Ask(t, testenv.Question{Op: "changes", Schema: old, Source: new})
		if err := json.Unmarshal(answer.Data, &said); err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for level, changes := range said {
			for _, c := range changes {
				want = append(want, comparable(Level(level), c.Description))
			}
		}
		for _, c := range Compare(load(t, old), load(t, new)) {
			if c.Level != Safe && !slices.Contains(beyond, c.Kind) {
				got = append(got, comparable(c.Level, c.Message))
				found[c.Kind]++
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("from\n%sto\n%sours\n%s\ntheirs\n%s", old, new, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	t.Logf("agreed on %v", found)
	if len(found) < 18 {
		t.Errorf("only %d kinds of changes came up: %v", len(found), found)
	}
}
