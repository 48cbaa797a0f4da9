package syntax_test

// corpus is what the parser is compared with graphql-js on, as it stands and
// mutated. It has every rule of the grammar, and every fault that has a message
// of its own.
var corpus = []string{
	// Operations.
	`{ a }`,
	`{ a b, c }`,
	`query { a }`,
	`query Q { a }`,
	`mutation M { a } subscription S { b }`,
	`query query { query } query fragment { on } query mutation { fragment }`,
	`query Q($a: Int) { a }`,
	`query Q($a: Int = 1, $b: [Int!]! = [1, 2] @d $c: A! = {x: 1}) @live { a(x: $a) }`,
	`query ($a: [[[A!]!]]!) { a }`,
	`query @a @b(x: 1) @a { a }`,
	`{ alias: a(x: 1, y: $v) @skip(if: true) { b { c } } }`,
	`{ a { b { c { d } } } e { f { g } h } }`,
	`{ true: null false: true on }`,
	`"of the query" query Q("of the variable" $a: Int, """block""" $b: Int) { a }`,
	`"of the fragment" fragment F on T { a }`,
	`"" mutation { a }`,
	`"d" { a }`, `"d" extend type A { a: B }`, `"d" nonsense`, `"d"`, `"d" "e" type A`, `"d" 1`, `"""d""" @x`,
	`query Q(`, `query Q() { a }`, `query Q($) { a }`, `query Q($a) { a }`, `query Q($a:) { a }`, `query Q($a: Int =) { a }`,
	`query Q($a: Int = $b) { a }`, `query Q($a: Int = [$b]) { a }`, `query Q($a: Int = {x: {y: $ }}) { a }`, `query Q($a: Int @d(x: $b)) { a }`,
	`query Q("d" a: Int) { a }`, `query Q("d") { a }`, `query Q("d" "e" $a: Int) { a }`,
	`query Q`, `query`, `query {`, `query {}`, `query Q @`, `query Q @a(`, `{ a`, `{ a(`, `{ a() }`, `{ a(b) }`, `{ a(b:) }`, `{ a(b: ) }`,
	`{ a: }`, `{ a:: b }`, `{ : b }`, `{ a: b: c }`, `{ a { } }`, `{ a {b }`, `{ a }}`, `}`, `{ a } b`, `{ a } {b}`, ``, ` `, `,,,`, `# only a comment`,
	`notanoperation Foo { a }`, `Query { a }`, `{ a $b }`, `{ $a }`, `{ 1 }`, `{ "a" }`, `{ a "b" }`, `{ a 1.5 }`, `{ a """b""" }`, `1`, `$`, `...`, `!`, `&`, `|`, `=`, `@`, `(`, `)`, `[`, `]`, `:`,

	// Fragments.
	`fragment F on T { a }`,
	`fragment F on T @d { ...G ... on U { b } ... @include(if: true) { c } ... { d } ...on on }`,
	`fragment fragment on fragment { ...fragment @d }`,
	`{ ...onward ...on T{a} ... on }`,
	`fragment on on T { a }`, `fragment "on" on T { a }`, `fragment """on""" on T { a }`, `fragment "x" on T { a }`, `fragment F T { a }`, `fragment F on { a }`, `fragment F on T`, `fragment F`, `fragment`, `fragment F($a: Int) on T { a }`,
	`{ ... }`, `{ ... on T }`, `{ ...on }`, `{ ...F { a } }`, `{ ...F(x: 1) }`, `{ ... "F" }`, `{ ... on "F" { a } }`, `{ .. F }`, `{ . }`, `{ .... }`, `{ ...... }`,

	// Values.
	`{ a(x: 0, x: -0, x: 1, x: -12, x: 1.0, x: -0.5e10, x: 1e-3, x: 1E+3, x: 0e0) }`,
	`{ a(x: true, x: false, x: null, x: ENUM, x: on) }`,
	`{ a(x: [], x: [1], x: [[], [1 2, 3]], x: {}, x: {a: 1}, x: {a: {b: [{c: $d}]} e: 1}) }`,
	`{ a(x: "", x: "a", x: "\" \\ \/ \b \f \n \r \t \u00e9 \u{1F600} \u{e9} \uD83D\uDE00 é 😀") }`,
	`{ a(x: """""", x: """a""", x: """ " "" \""" \ \n""", x: """` + "\n  first\n    second\n\n  third  \n\n" + `""") }`,
	"{ a(x: \"\"\"\n    a\n\n  b\n      c\n\"\"\" y: \"\"\"      a\n b\n   c\"\"\") }",
	"{ a(x: \"\"\"one\r\n  two\r   three\n\t four\r\n\"\"\") b }",
	"{ a(x: \"\"\"\n\n  \t\n\"\"\" y: \"\"\" a \"\"\" z: \"\"\"\n a\n\"\"\") }",
	`{ a(x: """\"""a\""""""") }`, `{ a(x: """a"""") }`, `{ a(x: """a\"""") }`, `{ a(x: """\\""") }`, `{ a(x: """" """) }`,
	`{ a(x: 00) }`, `{ a(x: 01) }`, `{ a(x: -) }`, `{ a(x: -a) }`, `{ a(x: 1.) }`, `{ a(x: .1) }`, `{ a(x: 1.a) }`, `{ a(x: 1e) }`, `{ a(x: 1e+) }`, `{ a(x: 1ea) }`,
	`{ a(x: 1a) }`, `{ a(x: 1_) }`, `{ a(x: 1.0.0) }`, `{ a(x: 1.5e3a) }`, `{ a(x: 0x1) }`, `{ a(x: 0b) }`, `{ a(x: +1) }`, `{ a(x: 1`, `{ a(x: 1.`, `{ a(x: -`, `{ a(x: 1e`, `{ a(x: 1é) }`, `{ a(x: 1.é) }`, `{ a(x: 1.") }`, `{ a(x: 0"") }`, `-1`, `--1`, `1-1`,
	`{ a(x: ") }`, `{ a(x: "a`, "{ a(x: \"a\nb\") }", "{ a(x: \"a\rb\") }", `{ a(x: "\`, `{ a(x: "\"`, `{ a(x: "\x") }`, `{ a(x: "\é") }`, `{ a(x: "\😀") }`, "{ a(x: \"\\\n\") }",
	`{ a(x: "\u") }`, `{ a(x: "\u0") }`, `{ a(x: "\u00") }`, `{ a(x: "\u00z1") }`, `{ a(x: "\u000`, `{ a(x: "\uD83D") }`, `{ a(x: "\uDE00") }`, `{ a(x: "\uD83D\u0041") }`, `{ a(x: "\uD83D\n") }`, `{ a(x: "\uD83D\uD83D") }`, `{ a(x: "\uD83D\u{DE00}") }`, `{ a(x: "\uD83D\uDE0`, `{ a(x: "\u😀😀😀😀") }`, `{ a(x: "\u0😀😀😀") }`, "{ a(x: \"\\u\n\n\n\n\") }",
	`{ a(x: "\u{}") }`, `{ a(x: "\u{") }`, `{ a(x: "\u{z}") }`, `{ a(x: "\u{0}") }`, `{ a(x: "\u{000000041}") }`, `{ a(x: "\u{00000041}") }`, `{ a(x: "\u{0000000041}") }`, `{ a(x: "\u{110000}") }`, `{ a(x: "\u{10FFFF}") }`, `{ a(x: "\u{D800}") }`, `{ a(x: "\u{DFFF}") }`, `{ a(x: "\u{FFFFFFFF}") }`, `{ a(x: "\u{7FFFFFFF}") }`, `{ a(x: "\u{FFFFFFFFF}") }`, `{ a(x: "\u{100000041}") }`, `{ a(x: "\u{12😀}") }`, `{ a(x: "\u{1`, `{ a(x: "\u{`,
	`{ a(x: """) }`, `{ a(x: """a`, `{ a(x: """a"`, `{ a(x: """a""`, `{ a(x: """a\"""`, `{ a(x: """a\`, "{ a(x: \"\"\"\n\n", `{ a(x: 'a') }`, `'`, `{ a(x: "a'b") 'c }`,
	`{ a(x: [) }`, `{ a(x: [1) }`, `{ a(x: [1, ]) }`, `{ a(x: {) }`, `{ a(x: {a}) }`, `{ a(x: {a:}) }`, `{ a(x: {a: 1) }`, `{ a(x: {1: 1}) }`, `{ a(x: {"a": 1}) }`, `{ a(x: {a: 1, }) }`, `{ a(x: [1, {a: [}]) }`,
	`{ a(x: $) }`, `{ a(x: $1) }`, `{ a(x: $"a") }`, `{ a(x: $ v) }`, `{ a(x: @) }`, `{ a(x: ...) }`, `{ a(x: !) }`, `{ a(x: :) }`, `{ a(x: )) }`,
	"{ a(x: \"tab\there\", y: \"nul\x00bell\x07del\x7f\", z: \"\"\"nul\x00\"\"\") } # nul\x00",

	// Ignored characters, line ends, what is no token.
	"\ufeff{ a }", "\ufeff{ a ?", "{ \ufeffa\ufeff }", "\ufeff\ufeff", "{ a # comment\n b # another\r c # third\r\n d }", "{a,b,,,c,}", "\t{\ta\t}\t", "#", "{ a } #", "{ a #}",
	"{\n a\n  ?\n}", "{\r a\r  ?\r}", "{\r\n a\r\n  ?\r\n}", "{\n\r a\n\r  ?", "{ é", "{ 😀", "{ \"😀\" ?", "# 😀\n ?", "\"😀é\" ?", "{ a(x: \"😀\", ?) }", "{\u2028 a", "{\u00a0a }", "\x00", "{ \x00 }", "{ \x07 }", "{ \x7f }", "{ a \v b }", "{ a \f b }", "\\", "{ a\\b }", "%", "^", "~", "`", ";", "<", ">", "?", "*", "+", "/", "\ufffd", "\U0010FFFF", "\ue000", "a-b", "{ a-b }", "é",
	"{ a(x: \"\"\"\n line\n  two\"\"\") ?", "{ a(x: \"\"\"\r\n\r\n\"\"\" ?", "\n\n\n  }", "\r\n\r\n  }", "query Q(\n  $a: Int\n  $b\n) { a }",

	// Schemas.
	`schema { query: Q }`, `"d" schema @a { query: Q mutation: M, subscription: S }`, `extend schema @a`, `extend schema { mutation: M }`, `extend schema @a { query: Q }`,
	`schema`, `schema {`, `schema {}`, `schema { query }`, `schema { query: }`, `schema { Query: Q }`, `schema { query: [Q] }`, `schema { "d" query: Q }`, `schema Q { query: Q }`, `extend schema`, `extend schema {}`, `extend schema { foo: Q }`, `schema @a`, `schema @a($b) { query: Q }`, `schema @a(x: $b) { query: Q }`, `schema { 1: Q }`, `schema { foo 😀`,
	`scalar S`, `"d" scalar S @specifiedBy(url: "x")`, `extend scalar S @a`, `scalar`, `scalar S {`, `extend scalar S`, `extend scalar S {`, `extend scalar`,
	`type A`, `type A { b: C }`, `"""d""" type A implements B & C @d { "f" b(x: Int = 1 @e, "g" y: [A!]): C! @f c: [D] }`, `type A implements & B & C`, `type A implements B`, `type A implements B { a: B }`, `type type implements interface { input: union }`, `type A implements B & C & D @d`,
	`type`, `type A {`, `type A {}`, `type A { b }`, `type A { b: }`, `type A { b: C = 1 }`, `type A { b(): C }`, `type A { b(x): C }`, `type A { b(x: Int: C }`, `type A { b(x: Int = $v): C }`, `type A { b(x: Int =): C }`, `type A { b: C! ! }`, `type A { b: [C }`, `type A { b: []}`, `type A { b: C!! }`, `type A { b: !C }`, `type A { "d" }`, `type A { "d" "e" b: C }`, `type A implements`, `type A implements &`, `type A implements B &`, `type A implements B & & C`, `type A implements B C`, `type A implements B, C { a: B }`, `type A implements { a: B }`, `type A @d @e(x: {a: [1]})`, `type "A"`, `type 1`, `type A B`,
	`extend type A { b: C }`, `extend type A @a`, `extend type A implements B`, `extend type A implements B & C @d { e: F }`, `extend type A`, `extend type`, `extend`, `extend foo`, `extend "type" A`, `extend 1`, `extend {`, `extend query Q { a }`, `extend directive @a on FIELD`, `extend directive @a @b`, `extend extend type A @a`, `extend type A {}`, `extend type A @a @`, `extend fragment F on T { a }`,
	`interface I`, `interface I { a: B }`, `"d" interface I implements J & K @d { a(x: Int): B }`, `interface I {}`, `extend interface I { a: B }`, `extend interface I implements J`, `extend interface I @d`, `extend interface I`, `interface`,
	`union U`, `union U = A`, `union U = | A | B`, `"d" union U @d = A | B | C`, `extend union U = A`, `extend union U @d`, `extend union U @d = A | B`, `union U =`, `union U = |`, `union U = | | A`, `union U = A |`, `union U = A B`, `union U = A || B`, `extend union U`, `union`, `union U = [A]`, `union U = A! `, `union U { a }`,
	`enum E`, `enum E { A }`, `"d" enum E @d { "v" A @deprecated(reason: "x") B, C }`, `extend enum E { A }`, `extend enum E @d`, `enum E {}`, `enum E { true }`, `enum E { A false }`, `enum E { null }`, `enum E { "d" null }`, `enum E { "true" }`, `enum E { "d" "true" }`, `enum E { "d" """false""" }`, `enum E { "d" "other" }`, `enum E { A = 1 }`, `enum E { 1 }`, `enum E { TRUE on }`, `extend enum E`, `enum E { A @d(x: null) }`, `enum`,
	`input I`, `input I { a: B }`, `"d" input I @d { "f" a: B = {c: [1]} @e b: [C!]! }`, `extend input I { a: B }`, `extend input I @d`, `input I @oneOf { a: B }`, `input I {}`, `input I { a(x: Int): B }`, `input I { a }`, `input I { a: B = $v }`, `extend input I`, `input`, `input I implements J`,
	`directive @d on FIELD`, `directive @d on | FIELD | QUERY`, `"x" directive @d("y" a: Int = 1 @e, b: [A!]) repeatable on QUERY | MUTATION | SUBSCRIPTION | FIELD | FRAGMENT_DEFINITION | FRAGMENT_SPREAD | INLINE_FRAGMENT | VARIABLE_DEFINITION`, `directive @d on SCHEMA | SCALAR | OBJECT | FIELD_DEFINITION | ARGUMENT_DEFINITION | INTERFACE | UNION | ENUM | ENUM_VALUE | INPUT_OBJECT | INPUT_FIELD_DEFINITION | DIRECTIVE_DEFINITION`,
	`directive @d`, `directive d on FIELD`, `directive @ on FIELD`, `directive @d on`, `directive @d on FOO`, `directive @d on FIELD |`, `directive @d on FIELD | FOO`, `directive @d on FIELD QUERY`, `directive @d() on FIELD`, `directive @d repeatable`, `directive @d repeatable repeatable on FIELD`, `directive @d REPEATABLE on FIELD`, `directive @on on FIELD`, `directive @repeatable repeatable on FIELD`, `directive @d on field`, `directive @d on "FIELD"`, `directive @d on FOO ?`, `directive @d on | | FIELD`, `directive @d @e on FIELD`, `directive @d on toString`,
	`{ a } type B { c: D } query Q { e }`, `type Query { a: Int } "x" extend type Query { b: Int }`,
	`type A { a: B } # end`, `{ a } directive`,
}
