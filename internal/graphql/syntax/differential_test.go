package syntax_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/testenv"
)

// exceptions are where the parser and graphql-js are meant to differ.
var exceptions = []struct {
	reason  string
	matches func(source string, ours, theirs outcome) bool
}{
	{
		"a message repeats 200 bytes of a token at most, so that an answer is not as large as a request",
		func(_ string, ours, theirs outcome) bool {
			before, after, cut := strings.Cut(ours.message, "…")
			return cut && ours.at == theirs.at && strings.HasPrefix(theirs.message, before) && strings.HasSuffix(theirs.message, after)
		},
	},
}

// outcome is what a parser says of a document.
type outcome struct {
	dump    string // when it is accepted
	message string
	at      testenv.OracleLocation
}

func ourOutcome(t *testing.T, doc *syntax.Document, source string) outcome {
	t.Helper()
	err := syntax.Parse(doc, []byte(source), syntax.Limits{})
	if err == nil {
		return outcome{dump: dump(doc)}
	}
	fault, ok := errors.AsType[*syntax.Error](err)
	if !ok || len(fault.Locations) != 1 {
		t.Fatalf("%q: %v is no error at one location", source, err)
	}
	return outcome{message: fault.Message, at: testenv.OracleLocation(fault.Locations[0])}
}

func theirOutcome(t *testing.T, js *testenv.Oracle, source string) outcome {
	t.Helper()
	answer := js.Ask(t, testenv.Question{Op: "parse", Source: source, Dump: true})
	if len(answer.Errors) > 0 {
		return outcome{message: answer.Errors[0].Message, at: answer.Errors[0].Locations[0]}
	}
	var o outcome
	if err := json.Unmarshal(answer.Data, &o.dump); err != nil {
		t.Fatal(err)
	}
	return o
}

// comparison counts what was compared.
type comparison struct {
	js       *testenv.Oracle
	doc      syntax.Document // used again and again, which must make no difference
	accepted int
	refused  int
	excepted int
}

func (c *comparison) compare(t *testing.T, source string) {
	t.Helper()
	ours, theirs := ourOutcome(t, &c.doc, source), theirOutcome(t, c.js, source)
	switch {
	case ours == theirs && ours.message == "":
		c.accepted++
	case ours == theirs:
		c.refused++
	default:
		for _, e := range exceptions {
			if e.matches(source, ours, theirs) {
				c.excepted++
				return
			}
		}
		t.Errorf("%s:\n%s", strconv.Quote(source[:min(len(source), 2000)]), difference(ours, theirs))
	}
}

// difference shows two outcomes from a little before where they part.
func difference(ours, theirs outcome) string {
	a, b := fmt.Sprintf("%+v", ours), fmt.Sprintf("%+v", theirs)
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	cut := func(s string) string { return s[max(0, same-200):min(len(s), same+200)] }
	return fmt.Sprintf("  ours   %s\n  theirs %s", cut(a), cut(b))
}

func (c *comparison) report(t *testing.T) {
	t.Helper()
	t.Logf("%d accepted with equal nodes, %d refused with equal message and place, %d exceptions", c.accepted, c.refused, c.excepted)
}

func TestTheParserAgreesWithGraphQLJS(t *testing.T) {
	c := comparison{js: testenv.GraphQLJS(t)}
	for _, source := range corpus {
		c.compare(t, source)
	}
	long := strings.Repeat("é", 300)
	for _, source := range []string{`{ a "` + long + `" }`, "{ " + strings.Repeat("1", 300) + " }"} {
		c.compare(t, source)
	}
	if c.excepted != 2 {
		t.Errorf("%d exceptions, want those of the two long tokens", c.excepted)
	}
	c.report(t)
}

func TestTheParserAgreesWithGraphQLJSOnRealSchemas(t *testing.T) {
	c := comparison{js: testenv.GraphQLJS(t)}
	for _, name := range []string{"github", "swapi", "swapi-02_nested_fields", "swapi-04_all_starships", "swapi-05_argument", "swapi-06_fragments", "swapi-07_fragments"} {
		if source, ok := testenv.Data(t, "schemas/"+name+".graphql"); ok {
			c.compare(t, string(source))
		}
	}
	c.report(t)
}

// mutants is how many mutations are compared, which takes some seconds; compared
// ends early on a slow machine.
const (
	mutants        = 20_000
	comparedWithin = 8 * time.Second
)

func TestTheParserAgreesWithGraphQLJSOnMutations(t *testing.T) {
	c := comparison{js: testenv.GraphQLJS(t)}
	rng := rand.New(rand.NewPCG(2025, 9))
	good := slices.DeleteFunc(slices.Clone(corpus), func(source string) bool {
		return syntax.Parse(&c.doc, []byte(source), syntax.Limits{}) != nil
	})
	began := time.Now()
	for range mutants {
		if time.Since(began) > comparedWithin || t.Failed() {
			break
		}
		source := corpus[rng.IntN(len(corpus))]
		if rng.IntN(4) > 0 { // most mutants should fail late
			source = good[rng.IntN(len(good))] + " " + good[rng.IntN(len(good))]
		}
		for range 1 + rng.IntN(2) {
			source = mutate(rng, source)
		}
		c.compare(t, source)
	}
	c.report(t)
}

// pieces cuts a document into what mutations move about: tokens mostly.
var pieces = regexp.MustCompile(`"""(?s:.*?)"""|"[^"\n]*"|\w+|\.\.\.|\s+|(?s:.)`)

// inserted is what mutations add.
var inserted = []string{
	"{", "}", "(", ")", "[", "]", ":", "=", "|", "&", "!", "@", "$", "...", ".", ",", "#", "\"", "\"\"\"", "\\", "\n", "\r\n", "\r", " ",
	"-", "0", "1", "1.5", "1e3", "e", "a", "on", "query", "fragment", "extend", "type", "input", "enum", "directive", "implements", "repeatable",
	"true", "null", `"s"`, `"""b"""`, `\u`, `\u{`, `\"""`, "é", "😀", "\ufeff", "\x00", "'", "FIELD", "@d(x: 1)", "$v", "$v: T", "{ a }",
}

// mutate deletes, doubles, swaps, replaces or adds a token, or does so to a
// character.
func mutate(rng *rand.Rand, source string) string {
	parts := pieces.FindAllString(source, -1)
	if rng.IntN(4) == 0 {
		parts = strings.Split(source, "")
	}
	if len(parts) == 0 {
		return inserted[rng.IntN(len(inserted))]
	}
	i, j := rng.IntN(len(parts)), rng.IntN(len(parts))
	switch rng.IntN(6) {
	case 0:
		parts = slices.Delete(parts, i, i+1)
	case 1:
		parts = slices.Insert(parts, i, parts[i])
	case 2:
		parts[i], parts[j] = parts[j], parts[i]
	case 3:
		parts[i] = inserted[rng.IntN(len(inserted))]
	case 4:
		parts = slices.Insert(parts, i, inserted[rng.IntN(len(inserted))])
	case 5:
		parts = parts[:i]
	}
	return strings.Join(parts, "")
}
