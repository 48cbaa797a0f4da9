package validate

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// A difference is a way in which we judge otherwise than the reference, on
// purpose.
type difference struct {
	reason string
	// applies reports whether a problem is of the kind, in a document with all of
	// ours and theirs.
	applies func(message string, all *judgement) bool
}

// A judgement is what is wrong with a document.
type judgement struct {
	doc          *syntax.Document
	ours, theirs []string
}

func (j *judgement) has(text string) bool {
	in := func(message string) bool { return strings.Contains(message, text) }
	return slices.ContainsFunc(j.ours, in) || slices.ContainsFunc(j.theirs, in)
}

var differences = []difference{
	{"beside definitions of types nothing else is told", func(message string, all *judgement) bool {
		return all.has("definition is not executable.") && !strings.Contains(message, "definition is not executable.")
	}},
	{"of fragments with a cycle, nothing is told that needs going into them", func(message string, all *judgement) bool {
		return all.has("within itself") && (strings.Contains(message, " conflict because ") || strings.Contains(message, "Maximum introspection depth"))
	}},
	{"@skip and @include are refused at the root of subscriptions, as the specification of 2025 has it; the reference applies them, or stops there", func(message string, all *judgement) bool {
		threw := len(all.theirs) == 1 && strings.HasPrefix(all.theirs[0], `Argument "if" `)
		return all.has("must not use `@skip`") && (threw || strings.Contains(message, "ubscription"))
	}},
	{"operations of a kind that the schema does not have are refused; the reference does so on execution", func(message string, _ *judgement) bool {
		return strings.Contains(message, "Schema is not configured to execute")
	}},
	{"of arguments and fields with the same name twice, which is told, it is left open whether they are the same as others", func(message string, all *judgement) bool {
		return strings.Contains(message, "differing arguments") && (all.has("There can be only one argument named") || all.has("There can be only one input field named"))
	}},
}

var unknownField = regexp.MustCompile(`(?m)^field: (.*) not defined on type: (\w+)\.?`)

// asReference gives a message of ours the reference's words. There is one that
// the wire contract has others for.
func asReference(message string) string {
	return unknownField.ReplaceAllString(message, `Cannot query field "$1" on type "$2".`)
}

func ours(v *Validator, s *schema.Schema, doc *syntax.Document, o Options) (all []string) {
	for _, err := range v.Check(s, doc, o) {
		var text strings.Builder
		text.WriteString(asReference(err.Message))
		for _, at := range err.Locations {
			text.WriteString(fmt.Sprintf(" %d:%d", at.Line, at.Column))
		}
		all = append(all, text.String())
	}
	return all
}

func theirs(answer testenv.Answer) (all []string) {
	for _, err := range answer.Errors {
		var text strings.Builder
		text.WriteString(err.Message)
		for _, at := range err.Locations {
			text.WriteString(fmt.Sprintf(" %d:%d", at.Line, at.Column))
		}
		all = append(all, text.String())
	}
	return all
}

// A tally counts what was compared.
type tally struct {
	documents, valid, problems int
	excused                    map[string]int
	rules                      map[string]int
	failed                     int
}

// compare holds our judgement of a document against the reference's.
func (c *tally) compare(t *testing.T, v *Validator, s *schema.Schema, q testenv.Question) {
	t.Helper()
	doc := &syntax.Document{}
	if syntax.Parse(doc, []byte(q.Source), syntax.Limits{Depth: 60, Tokens: 3000}) != nil {
		return
	}
	js := testenv.GraphQLJS(t)
	q.Op, q.MaxErrors = "validate", 1000
	all := &judgement{doc: doc, ours: ours(v, s, doc, Options{Suggestions: !q.NoSuggestions, MaxErrors: 1000}), theirs: theirs(js.Ask(t, q))}
	c.documents++
	c.problems += len(all.theirs)
	if len(all.theirs) == 0 {
		c.valid++
	}
	for _, message := range all.theirs {
		c.rules[ruleOf(message)]++
		c.judge(t, all, message, all.ours, "we do not tell", q.Source)
	}
	for _, message := range all.ours {
		c.judge(t, all, message, all.theirs, "only we tell", q.Source)
	}
}

func (c *tally) judge(t *testing.T, all *judgement, message string, others []string, what, source string) {
	t.Helper()
	if slices.Contains(others, message) {
		return
	}
	for _, d := range differences {
		if d.applies(message, all) {
			c.excused[d.reason]++
			return
		}
	}
	c.failed++
	if c.failed <= 10 {
		t.Errorf("%s: %s\nours %q\ntheirs %q\nin %s", what, message, all.ours, all.theirs, source)
	}
}

var variable = regexp.MustCompile(`"[^"]*"|\d+:\d+|: .*|found .*|Did you mean .*`)

// ruleOf returns what messages of one rule have in common.
func ruleOf(message string) string {
	if strings.Contains(message, " conflict because ") {
		return "Fields conflict"
	}
	text := strings.Join(strings.Fields(variable.ReplaceAllString(message, "")), " ")
	return text[:min(len(text), 60)]
}

func (c *tally) log(t *testing.T) {
	t.Logf("%d documents compared, %d of them valid; %d problems, of %d kinds; %d differ for a written reason", c.documents, c.valid, c.problems, len(c.rules), sum(c.excused))
	for reason, n := range c.excused {
		t.Logf("%6d %s", n, reason)
	}
}

func sum(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

func newTally() *tally { return &tally{excused: map[string]int{}, rules: map[string]int{}} }

func TestGeneratedOperationsAreJudgedAsByTheReferenceImplementation(t *testing.T) {
	testenv.GraphQLJS(t)
	c := newTally()
	var v Validator
	schemas := uint64(24)
	if race.Enabled { // which has little to find where nothing is concurrent
		schemas = 2
	}
	for seed := range schemas {
		r := rand.New(rand.NewPCG(seed, 11))
		text := schemaText(r)
		s, err := schema.Load(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		c.fuzz(t, &v, s, text, newOperations(r, s), 25)
	}
	c.log(t)
}

// fuzz compares n documents, and several mutants of each.
func (c *tally) fuzz(t *testing.T, v *Validator, s *schema.Schema, text string, g *operations, n int) {
	for i := range n {
		source := g.document()
		q := testenv.Question{Schema: text, Source: source, NoSuggestions: i%2 == 0}
		c.compare(t, v, s, q)
		for range 7 {
			q.Source = g.mutant(source)
			c.compare(t, v, s, q)
		}
	}
}

func TestRealSchemasAreJudgedAsByTheReferenceImplementation(t *testing.T) {
	testenv.GraphQLJS(t)
	for _, name := range []string{"swapi", "github"} {
		t.Run(name, func(t *testing.T) {
			text, ok := testenv.Data(t, "schemas/"+name+".graphql")
			if !ok {
				t.Log("the shared schemas are not here: nothing is compared")
				return
			}
			s, _, err := schema.LoadServed(string(text))
			if err != nil {
				t.Fatal(err)
			}
			c := newTally()
			var v Validator
			g := newOperations(rand.New(rand.NewPCG(5, 6)), s)
			for _, client := range []string{"02_nested_fields", "04_all_starships", "05_argument", "06_fragments", "07_fragments"} {
				if source, ok := testenv.Data(t, "schemas/swapi-"+client+".graphql"); ok && name == "swapi" {
					c.compare(t, &v, s, testenv.Question{Schema: string(text), Source: string(source)})
				}
			}
			n := 60
			if race.Enabled {
				n = 5
			}
			c.fuzz(t, &v, s, string(text), g, n)
			c.log(t)
		})
	}
}
