package sdl

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/testenv"
)

// wordings are the sentences that are ours, and what graphql-js says instead.
var wordings = []struct {
	ours   *regexp.Regexp
	theirs string
}{
	{regexp.MustCompile(`^field '(.*)' can only be defined once$`), `Field "$1" can only be defined once.`},
	{regexp.MustCompile(`^enum value '(.*)' can only be defined once$`), `Enum value "$1" can only be defined once.`},
	{regexp.MustCompile(`^there can be only one type named '(.*)'$`), `There can be only one type named "$1".`},
	{regexp.MustCompile(`^only one (.*) type allowed$`), `There can be only one $1 type in schema.`},
	{regexp.MustCompile(`^union member '(.*)\.(.*)' can only be defined once$`), `Union type $1 can only include type $2 once.`},
	{regexp.MustCompile(`^type '(.*)' does not implement field '(.*)' from interface '(.*)'$`), `Interface field $3.$2 expected but $1 does not provide it.`},
	{regexp.MustCompile(`^the (?:object|interface) named '(.*)' is invalid due to an empty body$`), `Type $1 must define one or more fields.`},
	{regexp.MustCompile(`^the union named '(.*)' is invalid due to an empty body$`), `Union type $1 must define one or more member types.`},
	{regexp.MustCompile(`^the enum named '(.*)' is invalid due to an empty body$`), `Enum type $1 must define one or more values.`},
	{regexp.MustCompile(`^the input named '(.*)' is invalid due to an empty body$`), `Input Object type $1 must define one or more fields.`},
}

// stricter are the rules that graphql-js does not have, with the reason why we do.
var stricter = []struct {
	message *regexp.Regexp
	reason  string
}{
	{
		regexp.MustCompile(` has an invalid default value: `),
		"the specification wants default values to be coercible; graphql-js 16 drops those that are not",
	},
	{regexp.MustCompile(`^All root types must be different`), "the specification wants different types; graphql-js has the rule from 17 on"},
	{regexp.MustCompile(`^Invalid circular reference\.`), "the specification forbids default values that hold themselves; graphql-js 16 runs out of stack on them"},
	{regexp.MustCompile(`^Directive @\w+ must not use itself`), "the specification forbids directives that use themselves; graphql-js does not look"},
	{
		regexp.MustCompile(`^the built-in type '.*' cannot be defined as another kind of type$`),
		"graphql-js ignores such a definition without a word, so that the schema means something else than it says",
	},
	{regexp.MustCompile(`^a schema cannot hold (operations|fragments)`), "graphql-js ignores them when it builds a schema"},
}

// A finding is a message with all its places, as both sides have it.
type finding struct {
	message string
	places  string
}

func places2text(all []syntax.Location) string {
	texts := make([]string, len(all))
	for i, at := range all {
		texts[i] = fmt.Sprintf("%d:%d", at.Line, at.Column)
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), " ")
}

// ours returns what we find, in the words of graphql-js: of the document, and
// only if that is nothing, of the schema. extra counts what only we look for.
func ours(doc *syntax.Document, extra map[string]int) map[finding]bool {
	c := newChecker(doc)
	c.index()
	c.checkDocument()
	if slices.IndexFunc(c.faults, func(f fault) bool { return only(f.message) == "" }) < 0 {
		c.checkSchema()
	}
	all := map[finding]bool{}
	for _, p := range c.problems() {
		if reason := only(p.Message); reason != "" {
			extra[reason]++
			continue
		}
		message := p.Message
		for _, w := range wordings {
			message = w.ours.ReplaceAllString(message, w.theirs)
		}
		at := places2text(append([]syntax.Location{p.Location}, p.Related...))
		if message == "Query root type must be provided." && !strings.Contains(string(doc.Source), "schema") {
			at = "" // theirs says no place
		}
		all[finding{message, at}] = true
	}
	return all
}

// only returns why a message is of a rule that only we have, "" when it is not.
func only(message string) string {
	for _, s := range stricter {
		if s.message.MatchString(message) {
			return s.reason
		}
	}
	return ""
}

func theirs(answer testenv.Answer) map[finding]bool {
	all := map[finding]bool{}
	for _, e := range answer.Errors {
		var at []syntax.Location
		for _, l := range e.Locations {
			at = append(at, syntax.Location{Line: l.Line, Column: l.Column})
		}
		all[finding{e.Message, places2text(at)}] = true
	}
	return all
}

// A tally counts what was compared.
type tally struct {
	schemas, valid, unparsable, unasked, problems int
	extra                                         map[string]int
	rules                                         map[string]int
}

var quoted = regexp.MustCompile(`"[^"]*"|'[^']*'|@?\b[A-Z]\w*(\.\w+)?(\(\w+:\))?|\[.*\]!?`)

// defaultsOutput reports whether an argument of an output type has a default value:
// graphql-js does not report that, but ends with a failed assertion.
func defaultsOutput(doc *syntax.Document) bool {
	c := newChecker(doc)
	c.index()
	return slices.ContainsFunc(doc.InputDefs, func(input syntax.InputDef) bool {
		return input.Default != syntax.None && !c.isInput(input.Type)
	})
}

// emptyBody reports whether a type has nothing between its braces: for graphql-js
// that is a syntax error, for us a fault of the type, which can be named.
func emptyBody(doc *syntax.Document) bool {
	return slices.ContainsFunc(doc.TypeDefs, func(def syntax.TypeDef) bool { return def.EmptyBody })
}

// compare holds our answer about a schema against that of graphql-js.
func (c *tally) compare(t *testing.T, js *testenv.Oracle, text string) {
	t.Helper()
	c.schemas++
	doc := &syntax.Document{}
	err := syntax.ParseSchema(doc, []byte(text), syntax.Limits{})
	if err == nil && defaultsOutput(doc) {
		c.unasked++
		return
	}
	want := theirs(js.Ask(t, testenv.Question{Op: "validateSDL", Source: text, NoSuggestions: true}))
	var got map[finding]bool
	if err == nil {
		got = ours(doc, c.extra)
	}
	if err != nil || emptyBody(doc) {
		c.unparsable++
		for f := range want {
			if strings.HasPrefix(f.message, "Syntax Error") && (err != nil || len(got) > 0) {
				return
			}
		}
		t.Fatalf("graphql-js can parse this, or we find nothing: %v\n%s", err, text)
	}
	if len(want) == 0 {
		c.valid++
	}
	for f := range want {
		c.problems++
		c.rules[quoted.ReplaceAllString(f.message, "…")]++
		if !got[f] {
			t.Errorf("only graphql-js: %s %s\n%s", f.places, f.message, text)
		}
	}
	for f := range got {
		if !want[f] {
			t.Errorf("only here: %s %s\n%s", f.places, f.message, text)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

func (c *tally) log(t *testing.T) {
	t.Logf("%d schemas (%d valid, %d not parsable, %d not asked about), %d problems of %d rules agreed on", c.schemas, c.valid, c.unparsable, c.unasked, c.problems, len(c.rules))
	for _, reason := range slices.Sorted(maps.Keys(c.extra)) {
		t.Logf("%d problems only here: %s", c.extra[reason], reason)
	}
	for _, rule := range slices.Sorted(maps.Keys(c.rules)) {
		t.Logf("%6d %s", c.rules[rule], rule)
	}
}

func newTally() *tally { return &tally{extra: map[string]int{}, rules: map[string]int{}} }

func TestSchemasAreJudgedAsByTheReferenceImplementation(t *testing.T) {
	js := testenv.GraphQLJS(t)
	c := newTally()
	for _, text := range corpus(t) {
		c.compare(t, js, text)
	}
	for _, name := range []string{"schemas/swapi.graphql", "schemas/github.graphql"} {
		if content, ok := testenv.Data(t, name); ok {
			c.compare(t, js, string(content))
		}
	}
	c.log(t)
}

// corpus reads the schemas of testdata/schemas: files of several, with lines of
// "---" between them.
func corpus(t testing.TB) (all []string) {
	files, err := filepath.Glob("testdata/schemas/*.graphql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas to compare: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(string(content), "\n---\n")...)
	}
	return all
}

func TestGeneratedSchemasAreJudgedAsByTheReferenceImplementation(t *testing.T) {
	t.Parallel()
	js := testenv.GraphQLJS(t)
	c := newTally()
	deadline := time.Now().Add(6 * time.Second)
	for seed := uint64(1); time.Now().Before(deadline) && seed <= 4000; seed++ {
		r := rand.New(rand.NewPCG(seed, 7))
		g := generator{r: r}
		text := g.schema()
		for range r.IntN(4) {
			text = g.mutate(text)
		}
		c.compare(t, js, text)
	}
	c.log(t)
}
