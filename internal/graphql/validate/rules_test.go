package validate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// problemsOf returns what is wrong with a document: "line:column… message".
func problemsOf(t testing.TB, schemaText, text string, o Options) (all []string) {
	t.Helper()
	var v Validator
	for _, err := range v.Check(loaded(t, schemaText), parsed(t, text), o) {
		var places strings.Builder
		for _, at := range err.Locations {
			places.WriteString(fmt.Sprintf("%d:%d ", at.Line, at.Column))
		}
		all = append(all, places.String()+err.Message)
	}
	return all
}

// Each rule with what breaks it, what is told, and what is told when names of
// the schema are hidden ("" for the same).
var ruleCases = []struct {
	rule, text, want, hidden string
}{
	{"ExecutableDefinitions", "{ me { id } } type A { b: Int } extend schema @once", `1:15 The "A" definition is not executable.|1:33 The schema definition is not executable.`, ""},
	{"UniqueOperationNames", "query A { me { id } } query A { me { id } }", `1:7 1:29 There can be only one operation named "A".`, ""},
	{"LoneAnonymousOperation", "{ me { id } } query A { me { id } }", "1:1 This anonymous operation must be the only defined operation.", ""},
	{
		"SingleFieldSubscriptions", "subscription S { renamed { id } born { id } ...F } fragment F on Subscription { born { id } x: renamed { id } }",
		`1:33 1:81 1:93 Subscription "S" must select only one top level field.`, "",
	},
	{"SingleFieldSubscriptions: introspection", "subscription { __typename }", "1:16 Anonymous Subscription must not select an introspection top level field.", ""},
	{"SingleFieldSubscriptions: conditions", "subscription { renamed @skip(if: false) { id } }", "1:24 Anonymous Subscription must not use `@skip` and `@include` directives in the top level selection.", ""},
	{
		"KnownTypeNames", "query($a: [Nope!]) { me { ... on None { id } ...F } paint(any: $a) } fragment F on Never { id }",
		`1:12 Unknown type "Nope".|1:34 Unknown type "None".|1:84 Unknown type "Never".`, "",
	},
	{
		"FragmentsOnCompositeTypes", "{ me { ... on Place { x } ...F } } fragment F on Int { id }",
		`1:15 Fragment cannot condition on non composite type "Place".|1:50 Fragment "F" cannot condition on non composite type "Int".`, "",
	},
	{
		"VariablesAreInputTypes", "query($a: [Person!]) { paint(any: [$a]) }", `1:7 1:36 Variable "$a" of type "[Person!]" used in position expecting type "Anything".|1:11 Variable "$a" cannot be non-input type "[Person!]".`,
		`1:7 1:36 Variable "$a" of type "[Person!]" used in position expecting another type.|1:11 Variable "$a" cannot be non-input type "[Person!]".`,
	},
	{
		"ScalarLeafs", "{ me { name { x } pets } }", `1:13 Field "name" must not have a selection since type "String" has no subfields.|1:19 Field "pets" of type "[Pet!]!" must have a selection of subfields. Did you mean "pets { ... }"?`,
		`1:13 Field "name" must not have a selection since its type has no subfields.|1:19 Field "pets" must have a selection of subfields. Did you mean "pets { ... }"?`,
	},
	{
		"FieldsOnCorrectType", "{ nope me { a: nome } beings { name } }", "1:3 field: nope not defined on type: Query|1:13 field: nome not defined on type: Person|1:32 field: name not defined on type: Being",
		"1:3 field: nope not defined|1:13 field: nome not defined|1:32 field: name not defined",
	},
	{"UniqueFragmentNames", "{ me { ...F } } fragment F on Person { id } fragment F on Person { id }", `1:26 1:54 There can be only one fragment named "F".`, ""},
	{"KnownFragmentNames", "{ me { ...F } }", `1:11 Unknown fragment "F".`, ""},
	{"NoUnusedFragments", "{ me { id } } fragment F on Person { ...G } fragment G on Person { id }", `1:15 Fragment "F" is never used.|1:45 Fragment "G" is never used.`, ""},
	{
		"PossibleFragmentSpreads", "{ me { ... on Cat { id } ...F } } fragment F on Pet { id }",
		`1:8 Fragment cannot be spread here as objects of type "Person" can never be of type "Cat".|1:26 Fragment "F" cannot be spread here as objects of type "Person" can never be of type "Pet".`,
		`1:8 Fragment cannot be spread here as it can never apply.|1:26 Fragment "F" cannot be spread here as it can never apply.`,
	},
	{
		"NoFragmentCycles", "{ me { ...A } } fragment A on Person { ...B } fragment B on Person { ...A ...B }",
		`1:40 1:70 Cannot spread fragment "A" within itself via "B".|1:75 Cannot spread fragment "B" within itself.`, "",
	},
	{"UniqueVariableNames", "query($a: Int, $b: Int, $a: Int) { pets(first: $a) { friends(last: $b) { count } } }", `1:8 1:26 There can be only one variable named "$a".`, ""},
	{"NoUndefinedVariables", "query Q { me { ...F } } fragment F on Person { pets(first: $n) { id } }", `1:60 1:1 Variable "$n" is not defined by operation "Q".`, ""},
	{"NoUnusedVariables", "query Q($n: Int) { me { id } }", `1:9 Variable "$n" is never used in operation "Q".`, ""},
	{
		"KnownDirectives", "query @nope { me @tag(name: \"x\") { id @skip(if: true) } ...Q @tag(name: \"x\") } fragment Q on Query @once { me { id } }",
		`1:7 Unknown directive "@nope".|1:62 Directive "@tag" may not be used on FRAGMENT_SPREAD.|1:100 Directive "@once" may not be used on FRAGMENT_DEFINITION.`, "",
	},
	{"UniqueDirectivesPerLocation", "{ me @once @tag(name: \"a\") @once @tag(name: \"b\") @once { id } }", `1:6 1:28 The directive "@once" can only be used once at this location.|1:6 1:50 The directive "@once" can only be used once at this location.`, ""},
	{
		"KnownArgumentNames", "{ me(id: 1) { id @tag(name: \"x\", nome: 1) __typename(x: 1) } }",
		`1:6 Unknown argument "id" on field "Query.me".|1:34 Unknown argument "nome" on directive "@tag".|1:54 Unknown argument "x" on field "Person.__typename".`,
		`1:6 Unknown argument "id" on field "me".|1:34 Unknown argument "nome" on directive "@tag".|1:54 Unknown argument "x" on field "__typename".`,
	},
	{"UniqueArgumentNames", "{ pets(first: 1, color: RED, first: 2, first: 3) { id } }", `1:8 1:30 1:40 There can be only one argument named "first".`, ""},
	{
		"ValuesOfCorrectType", `{ pets(first: "1", color: PINK) { friends(first: 3000000000) { count } } paint(colors: [1], f: true, b: 1, s: 2) node(id: 1.5) { id } }`,
		`1:15 Int cannot represent non-integer value: "1"|1:27 Value "PINK" does not exist in "Color" enum.|1:50 Int cannot represent non 32-bit signed integer value: 3000000000|` +
			`1:89 Enum "Color" cannot represent non-enum value: 1.|1:96 Float cannot represent non numeric value: true|1:105 Boolean cannot represent a non boolean value: 1|` +
			`1:111 String cannot represent a non string value: 2|1:123 ID cannot represent a non-string and non-integer value: 1.5`,
		`1:15 Unexpected value "1".|1:27 Value "PINK" does not exist in the enum.|1:50 Unexpected value 3000000000.|1:89 Unexpected value 1.|1:96 Unexpected value true.|` +
			`1:105 Unexpected value 1.|1:111 Unexpected value 2.|1:123 Unexpected value 1.5.`,
	},
	{
		"ValuesOfCorrectType: input objects", `{ me { home(near: {y: null, z: 1, next: 3}, at: [null, {x: null}], by: {a: 1, b: "x"}) a: home(by: {a: null}) } }`,
		`1:19 Field "Place.x" of required type "Int!" was not provided.|1:29 Field "z" is not defined by type "Place".|1:41 Expected value of type "Place", found 3.|1:50 Expected value of type "Place!", found null.|` +
			`1:60 Expected value of type "Int!", found null.|1:72 OneOf Input Object "Spot" must specify exactly one key.|1:100 Field "Spot.a" must be non-null.`,
		`1:19 A required field was not provided.|1:29 Field "z" is not defined by its type.|1:41 Unexpected value 3.|1:50 Unexpected value null.|` +
			`1:60 Unexpected value null.|1:72 OneOf Input Object must specify exactly one key.|1:100 Field "a" must be non-null.`,
	},
	{
		"ProvidedRequiredArguments", "{ pet { id @skip } }", `1:3 Field "pet" argument "id" of type "ID!" is required, but it was not provided.|1:12 Directive "@skip" argument "if" of type "Boolean!" is required, but it was not provided.`,
		`1:3 Field "pet" is missing a required argument.|1:12 Directive "@skip" is missing a required argument.`,
	},
	{
		"VariablesInAllowedPosition", "query($n: String, $b: Boolean, $a: Int) { pets(first: $n) { id @skip(if: $b) } me { home(by: {a: $a}) } }",
		`1:7 1:55 Variable "$n" of type "String" used in position expecting type "Int".|1:19 1:74 Variable "$b" of type "Boolean" used in position expecting type "Boolean!".|` +
			`1:32 1:98 Variable "$a" is of type "Int" but must be non-nullable to be used for OneOf Input Object "Spot".`,
		`1:7 1:55 Variable "$n" of type "String" used in position expecting another type.|1:19 1:74 Variable "$b" of type "Boolean" used in position expecting another type.|` +
			`1:32 1:98 Variable "$a" is of type "Int" but must be non-nullable to be used for a OneOf Input Object.`,
	},
	{
		"OverlappingFieldsCanBeMerged", "{ me { a: id a: name } pet(id: 1) { name name(upper: true) ... on Dog { size } ... on Cat { size } } }",
		`1:8 1:14 Fields "a" conflict because "id" and "name" are different fields. Use different aliases on the fields to fetch both if this was intentional.|` +
			`1:37 1:42 Fields "name" conflict because they have differing arguments. Use different aliases on the fields to fetch both if this was intentional.|` +
			`1:73 1:93 Fields "size" conflict because they return conflicting types "Float!" and "Int". Use different aliases on the fields to fetch both if this was intentional.`,
		`1:8 1:14 Fields "a" conflict because "id" and "name" are different fields. Use different aliases on the fields to fetch both if this was intentional.|` +
			`1:37 1:42 Fields "name" conflict because they have differing arguments. Use different aliases on the fields to fetch both if this was intentional.|` +
			`1:73 1:93 Fields "size" conflict because they return conflicting types. Use different aliases on the fields to fetch both if this was intentional.`,
	},
	{
		"OverlappingFieldsCanBeMerged: inside", "{ me { ...A ...B } } fragment A on Person { p: pets { x: id } } fragment B on Person { p: pets { x: name } }",
		`1:45 1:55 1:88 1:98 Fields "p" conflict because subfields "x" conflict because "id" and "name" are different fields. Use different aliases on the fields to fetch both if this was intentional.`, "",
	},
	{"UniqueInputFieldNames", "{ me { home(near: {x: 1, x: 2}) } }", `1:20 1:26 There can be only one input field named "x".`, ""},
	{"MaxIntrospectionDepth", "{ __schema { types { fields { type { fields { type { ...T } } } } } } } fragment T on __Type { fields { name } }", "1:3 Maximum introspection depth exceeded", ""},
	{"operations of no type", "mutation { a }", "1:1 Schema is not configured to execute mutation operation.", ""},
}

func TestEachRuleTellsWhatBreaksIt(t *testing.T) {
	for _, c := range ruleCases {
		text := petSchema
		if c.rule == "operations of no type" {
			text = "type Query { a: Int }"
		}
		if got := strings.Join(problemsOf(t, text, c.text, Options{}), "|"); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.rule, got, c.want)
		}
		hidden := c.hidden
		if hidden == "" {
			hidden = c.want
		}
		if got := strings.Join(problemsOf(t, text, c.text, Options{Hide: true, Suggestions: true}), "|"); got != hidden {
			t.Errorf("%s, hidden\n got %s\nwant %s", c.rule, got, hidden)
		}
	}
}

func TestNothingIsWrongWithValidDocuments(t *testing.T) {
	for _, text := range []string{
		usual,
		"query($n: Int = 3, $c: [Color!], $f: Float = 1, $p: Place = {x: 1}) { pets(first: $n) { id } paint(colors: $c, f: $f, any: {a: [$n, {b: $p}]}) me { home(near: $p, at: {x: 1}) } }",
		"{ paint(colors: RED, f: 1, any: [1, {a: null}], s: \"\"\"block\"\"\") node(id: 4) { __typename id } }",
		"{ pet(id: 1) { ... on Dog { x: name } ... on Cat { x: name(upper: true) } } }",
		"subscription S { ...F } fragment F on Subscription { renamed { id } renamed { name } }",
		"query A { ...Q } query B { ...Q me { name } } fragment Q on Query { me { id } }",
		"{ ... @include(if: true) { me @once @tag(name: \"a\") @tag(name: \"b\", level: 2) { id } } }",
		"{ __schema { types { fields { type { name } } } } __type(name: \"Dog\") { interfaces { possibleTypes { name } } } }",
		"query($n: Int, $m: Int = 1) { count(n: $n) c: count(n: $m) }",
		"query($s: String!, $i: Int!) { me { home(by: {a: $i}) h: home(by: {b: $s}) } }",
	} {
		if got := problemsOf(t, petSchema, text, Options{}); got != nil {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestSuggestionsAreMadeOnRequestOnly(t *testing.T) {
	text := "{ pets(frist: 1, color: GREN) { nam barks ... on Dgo { id } } }"
	with := strings.Join(problemsOf(t, petSchema, text, Options{Suggestions: true}), "\n")
	for _, want := range []string{
		`on field "Query.pets". Did you mean "first"?`, `enum. Did you mean the enum value "GREEN" or "RED"?`,
		`field: nam not defined on type: Pet. Did you mean "name"?`, `Did you mean to use an inline fragment on "Dog"?`, `Unknown type "Dgo". Did you mean "Dog"?`,
	} {
		if !strings.Contains(with, want) {
			t.Errorf("%s is not in\n%s", want, with)
		}
	}
	for _, o := range []Options{{}, {Suggestions: true, Hide: true}} {
		if got := strings.Join(problemsOf(t, petSchema, text, o), "\n"); strings.Contains(got, "Did you mean") {
			t.Errorf("%+v: %s", o, got)
		}
	}
}

func TestErrorsEndWithOneThatSaysThatThereAreMore(t *testing.T) {
	got := problemsOf(t, petSchema, "{"+strings.Repeat(" nope", 100)+" }", Options{})
	if len(got) != DefaultMaxErrors+1 || got[DefaultMaxErrors] != "Too many validation errors, error limit reached. Validation aborted." {
		t.Errorf("%q", got)
	}
}

func TestTooManyFieldsToCompareAreRefused(t *testing.T) {
	text := hostile()["same field, nested, each other"]
	got := problemsOf(t, petSchema, text, Options{})
	if len(got) != 1 || got[0] != "The document is too complex: it has too many fields of the same name to compare." {
		t.Errorf("%.300q", got)
	}
}

func TestMessagesRepeatLittleOfTheDocument(t *testing.T) {
	long := strings.Repeat("é", 5000)
	for _, text := range []string{
		`{ pets(first: "` + long + `") { id } }`, `{ pets(first: ["` + long + `", 1]) { id } }`, "{ " + strings.Repeat("n", 5000) + " }",
		"{ me { a: " + strings.Repeat("n", 5000) + " a: " + strings.Repeat("m", 5000) + " } }",
		"{ me { ..." + strings.Repeat("n", 5000) + " } }",
	} {
		for _, got := range problemsOf(t, petSchema, text, Options{}) {
			if len(got) > 800 {
				t.Errorf("%d bytes: %s", len(got), got)
			}
		}
	}
}

func TestOperationsAreSelectedByName(t *testing.T) {
	const two = "query A { me { id } } query B { me { id } }"
	for _, c := range []struct {
		text, name string
		want       int
		err        string
	}{
		{"{ me { id } }", "", 0, ""},
		{"query A { me { id } }", "A", 0, ""},
		{two, "B", 1, ""},
		{two, "", -1, "Must provide operation name if query contains multiple operations."},
		{two, "C", -1, `Unknown operation named "C".`},
		{"fragment F on Person { id }", "", -1, "Must provide an operation."},
		{"fragment F on Person { id }", "F", -1, "Must provide an operation."},
	} {
		got, err := Select(parsed(t, c.text), c.name)
		message := ""
		if err != nil {
			message = err.Message
		}
		if got != c.want || message != c.err {
			t.Errorf("%s, %s: %d, %s", c.text, c.name, got, message)
		}
	}
}

func TestPlacesAreThoseOfTheDocument(t *testing.T) {
	source := "{\r\n \U0001F600é\r a\n}"
	doc := &syntax.Document{Source: []byte(source)}
	var offsets []uint32
	for i := range source {
		if !strings.HasSuffix(source[:i], "\r") || source[i] != '\n' { // no token starts inside the end of a line
			offsets = append(offsets, uint32(i))
		}
	}
	var want []syntax.Location
	for _, at := range offsets {
		want = append(want, doc.Location(at))
	}
	if got := locate(nil, []byte(source), offsets); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
