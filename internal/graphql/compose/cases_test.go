package compose_test

import "github.com/sluicegate/sluice/internal/graphql/compose"

// A composition is a case: subgraphs a, b, c, … and what comes of them.
type composition struct {
	name      string
	subgraphs []string // their schemas
	want      []string // every problem, as "CODE: text"; none: they can be composed

	// Why the reference, @apollo/federation 0.38.1, has another verdict; "": it has the same.
	different string
}

// named returns the subgraphs with their names.
func (c *composition) named() (all []compose.Subgraph) {
	for i, sdl := range c.subgraphs {
		all = append(all, compose.Subgraph{Name: string(rune('a' + i)), SDL: sdl})
	}
	return all
}

const user = `type Query { me: User } type User @key(fields: "id") { id: ID! name: String }`

// link declares that a subgraph uses Federation 2.
const link = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])` + "\n"

var compositions = []composition{
	{
		name:      "entity extended",
		subgraphs: []string{user, `extend type User @key(fields: "id") { id: ID! @external age: Int }`},
	},
	{
		name:      "extended by the directive",
		subgraphs: []string{user, `type User @extends @key(fields: "id") { id: ID! @external age: Int }`},
	},
	{
		name: "several keys, one nested",
		subgraphs: []string{
			`type Query { me: User } type User @key(fields: "id") @key(fields: "org { id } email") { id: ID! email: String! org: Org! } type Org { id: ID! }`,
			`extend type User @key(fields: "email org { id }") { email: String! @external org: Org! @external age: Int } type Org { id: ID! }`,
		},
		different: "the order in which a key names fields has no meaning",
	},
	{
		name: "requires and provides",
		subgraphs: []string{
			user,
			`extend type User @key(fields: "id") { id: ID! @external name: String @external greeting: String @requires(fields: "name") posts: [Post] }
			type Post { author: User @provides(fields: "name") }`,
		},
	},
	{
		name: "the protocol's own definitions",
		subgraphs: []string{user + `
			scalar _Any scalar _FieldSet union _Entity = User type _Service { sdl: String }
			directive @key(fields: _FieldSet!) on OBJECT | INTERFACE
			extend type Query { _service: _Service! _entities(representations: [_Any!]!): [_Entity]! }`},
	},
	{
		name:      "root types of other names",
		subgraphs: []string{`schema { query: Root mutation: Change } type Root { a: Int } type Change { b: Root }`, `extend type Query { c: Int } type Mutation { d: Int }`},
	},
	{
		name: "shared types",
		subgraphs: []string{
			`type Query { a(i: I = {f: "x"}): V } type V implements N { e: E n: Int u: U s: S } enum E { A B } interface N { n: Int } union U = V | W type W { n: Int } scalar S input I { f: String }`,
			`extend type Query { b(i: I): V } "described" type V implements N { u: U s: S n: Int e: E } enum E { B A } interface N { n: Int } union U = W | V type W { n: Int } scalar S input I { f: String }`,
		},
	},
	{
		name:      "extension of a type without key",
		subgraphs: []string{`type Query { a: T } type T { a: Int }`, `extend type T { b: Int } extend type Query { b: T }`},
		want: []string{
			"FIELD_UNREACHABLE: the field 'a' of the type named 'T' cannot be reached: when b returns the object, no key leads to a subgraph that resolves the field (a, line 1, b, line 1)",
			"FIELD_UNREACHABLE: the field 'b' of the type named 'T' cannot be reached: when a returns the object, no key leads to a subgraph that resolves the field (a, line 1, b, line 1)",
		},
		different: "the reference composes schemas with fields that it cannot resolve afterwards",
	},
	{
		name:      "orphan extension",
		subgraphs: []string{user, "\n" + `extend type Nope @key(fields: "id") { id: ID! @external } extend enum Some { A }`},
		want: []string{
			"EXTENSION_WITH_NO_BASE: the extension orphan named 'Nope' was never resolved in the supergraph (b, line 2)",
			"EXTENSION_WITH_NO_BASE: the extension orphan named 'Some' was never resolved in the supergraph (b, line 2)",
		},
	},
	{
		name:      "entity extended without key",
		subgraphs: []string{user, `extend type User { id: ID! @external age: Int }`},
		want:      []string{"KEY_MISSING_ON_EXTENSION: an extension of the entity named 'User' does not have a key directive (a, line 1, b, line 1)"},
		different: "the product refuses it by its own rule",
	},
	{
		name:      "type without key extended with one",
		subgraphs: []string{`type Query { a: T } type T { id: ID! }`, `extend type T @key(fields: "id") { id: ID! @external b: Int }`},
		want:      []string{"KEY_MISSING_ON_BASE: the extension named 'T' has a key directive but there is no entity of the same name (a, line 1, b, line 1)"},
	},
	{
		name:      "entity defined twice",
		subgraphs: []string{user, `type User @key(fields: "id") { id: ID! age: Int }`},
		want:      []string{"ENTITY_DEFINED_TWICE: the entity named 'User' is defined in the subgraph(s) more than once (a, line 1, b, line 1)"},
	},
	{
		name:      "shared type extended",
		subgraphs: []string{`type Query { a: T } type T { a: Int }`, `type T { a: Int }`, `extend type T { b: Int }`},
		want:      []string{"SHARED_TYPE_EXTENDED: the type named 'T' cannot be extended because it is a shared type (a, line 1, b, line 1, c, line 1)"},
		different: "the product refuses it by its own rule",
	},
	{
		name:      "shared objects that differ",
		subgraphs: []string{`type Query { a: T } type T { a: Int b(x: Int = 1, y: ID): Int }`, `type T { a: Int! b(x: Int = 2, z: ID): Int c: ID }`},
		want: []string{
			"FIELD_TYPE_MISMATCH: the shared type named 'T' must be identical in any subgraphs to federate: the field 'a' is Int in a and Int! in b (a, line 1, b, line 1)",
			"ARGUMENT_MISMATCH: the shared type named 'T' must be identical in any subgraphs to federate: the argument 'b(x:)' is Int = 1 in a and Int = 2 in b (a, line 1, b, line 1)",
			"ARGUMENT_MISMATCH: the shared type named 'T' must be identical in any subgraphs to federate: the argument 'b(y:)' is ID in a and missing in b (a, line 1, b, line 1)",
			"ARGUMENT_MISMATCH: the shared type named 'T' must be identical in any subgraphs to federate: the argument 'b(z:)' is ID in b and missing in a (a, line 1, b, line 1)",
			"FIELD_TYPE_MISMATCH: the shared type named 'T' must be identical in any subgraphs to federate: the field 'c' is ID in b and missing in a (a, line 1, b, line 1)",
		},
	},
	{
		name:      "shared enums that differ",
		subgraphs: []string{`type Query { a: E } enum E { A B }`, `enum E { A C }`},
		want: []string{
			"ENUM_MISMATCH: the shared type named 'E' must be identical in any subgraphs to federate: the value 'B' is defined in a and missing in b (a, line 1, b, line 1)",
			"ENUM_MISMATCH: the shared type named 'E' must be identical in any subgraphs to federate: the value 'C' is defined in b and missing in a (a, line 1, b, line 1)",
		},
	},
	{
		name: "shared inputs, unions, interfaces and scalars that differ",
		subgraphs: []string{
			`type Query { a(i: I): U n: N s: S } input I { f: Int g: Int = 1 } union U = A | B type A { x: Int } type B implements N { x: Int } interface N { x: Int } scalar S @specifiedBy(url: "u")`,
			`input I { f: ID g: Int = 2 } union U = A type A implements N { x: Int } type B { x: Int } interface N { x: Int y: Int } scalar S` + "\nextend type A { y: Int }",
		},
		want: []string{
			"SHARED_TYPE_EXTENDED: the type named 'A' cannot be extended because it is a shared type (a, line 1, b, line 1)",
			"IMPLEMENTED_INTERFACE_MISMATCH: the shared type named 'B' must be identical in any subgraphs to federate: the interface 'N' is implemented in a and missing in b (a, line 1, b, line 1)",
			"INPUT_FIELD_MISMATCH: the shared type named 'I' must be identical in any subgraphs to federate: the input field 'f' is ID in b and Int in a (a, line 1, b, line 1)",
			"INPUT_FIELD_MISMATCH: the shared type named 'I' must be identical in any subgraphs to federate: the input field 'g' is Int = 1 in a and Int = 2 in b (a, line 1, b, line 1)",
			"FIELD_TYPE_MISMATCH: the shared type named 'N' must be identical in any subgraphs to federate: the field 'y' is Int in b and missing in a (a, line 1, b, line 1)",
			"SCALAR_MISMATCH: the shared type named 'S' must be identical in any subgraphs to federate: the URL '@specifiedBy' is missing in b and u in a (a, line 1, b, line 1)",
			"UNION_MISMATCH: the shared type named 'U' must be identical in any subgraphs to federate: the member 'B' is a member in a and missing in b (a, line 1, b, line 1)",
		},
	},
	{
		name:      "kinds that differ",
		subgraphs: []string{`type Query { a: T b: E } type T { a: Int } enum E { A }`, `enum T { A } extend type E { a: Int }`},
		want: []string{
			"KIND_MISMATCH: the type named 'E' cannot be extended as another kind of type: it is an enum in a, it is an object in b (a, line 1, b, line 1)",
			"KIND_MISMATCH: the shared type named 'T' must be identical in any subgraphs to federate: it is an object in a, it is an enum in b (a, line 1, b, line 1)",
		},
	},
	{
		name:      "fields that two subgraphs resolve",
		subgraphs: []string{user + ` extend type Query { both: Int same: Int @shareable }`, `extend type Query { both: Int same: Int @shareable } extend type User @key(fields: "id") { id: ID! @external name: String }`},
		want: []string{
			"FIELD_DEFINED_TWICE: the field 'both' of the type named 'Query' is resolved by more than one subgraph: mark it @external where it is resolved elsewhere, or @shareable everywhere (a, line 1, b, line 1)",
			"FIELD_DEFINED_TWICE: the field 'name' of the type named 'User' is resolved by more than one subgraph: mark it @external where it is resolved elsewhere, or @shareable everywhere (a, line 1, b, line 1)",
		},
	},
	{
		name:      "external fields",
		subgraphs: []string{user + ` type A @key(fields: "id") { id: ID! @external }`, `extend type User @key(fields: "id") { id: String! @external nick: String @external x: Int @requires(fields: "nick") }`},
		want: []string{
			"EXTERNAL_USED_ON_BASE: the field 'id' of the type named 'A' must not be external where the type is defined (a, line 1)",
			"EXTERNAL_TYPE_MISMATCH: the field 'id' of the type named 'User' must be the same in all subgraphs that have it: the field 'id' is ID! in a and String! in b (a, line 1, b, line 1)",
			"EXTERNAL_MISSING_ON_BASE: the field 'nick' of the type named 'User' is external, and no subgraph resolves it (b, line 1)",
		},
	},
	{
		name: "keys that are not valid",
		subgraphs: []string{
			`type Query { a: A }
			type A @key(fields: "nope") @key(fields: "list") @key(fields: "org") @key(fields: "id { x }") @key(fields: "arg") @key(fields: "id id") @key(fields: "id } { id") {
				id: ID! list: [ID] org: Org arg(x: Int): ID
			}
			type Org { id: ID! }`,
		},
		want: []string{
			`INVALID_FIELD_SET: @key(fields: "id id") is not a set of fields such as id organisation { id }: it names id twice (a, line 2)`,
			`INVALID_FIELD_SET: @key(fields: "id } { id") is not a set of fields such as id organisation { id }: only names of fields and braces are possible (a, line 2)`,
		},
	},
	{
		name: "keys that name what is no key",
		subgraphs: []string{
			`type Query { a: A }
			type A @key(fields: "nope") @key(fields: "list") @key(fields: "org") @key(fields: "id { x }") @key(fields: "arg") {
				id: ID! list: [ID] org: Org arg(x: Int): ID
			}
			type Org { id: ID! }`,
			`extend type A @key(fields: "id") { id: ID! @external }`,
		},
		want: []string{
			`KEY_INVALID_FIELD: @key(fields: "arg") of the type named 'A' is not valid: 'A.arg' has arguments (a, line 2)`,
			`KEY_INVALID_FIELD: @key(fields: "id { x }") of the type named 'A' is not valid: 'A.id' is of the type ID!, which has no fields (a, line 2)`,
			`KEY_INVALID_FIELD: @key(fields: "list") of the type named 'A' is not valid: 'A.list' is of the type [ID]; the fields of a key cannot be lists, interfaces or unions (a, line 2)`,
			`KEY_INVALID_FIELD: @key(fields: "nope") of the type named 'A' is not valid: 'A' has no field 'nope' in this subgraph (a, line 2)`,
			`KEY_INVALID_FIELD: @key(fields: "org") of the type named 'A' is not valid: 'A.org' needs fields in braces: it is of the type Org (a, line 2)`,
			`KEY_NOT_SPECIFIED: @key(fields: "id") of the type named 'A' is not valid: the definition in a does not have this key (b, line 1)`,
		},
	},
	{
		name: "requires and provides of unknown fields",
		subgraphs: []string{
			user,
			`extend type User @key(fields: "id") {
				id: ID! @external
				age: Int
				a: Int @requires(fields: "nope")
				b: Int @requires(fields: "age")
				c: Post @provides(fields: "title")
				d: User @provides(fields: "nope")
				e: User @provides(fields: "age")
			}
			type Post { title: String a: Int @requires(fields: "title") }`,
		},
		want: []string{
			`REQUIRES_FIELDS_MISSING_EXTERNAL: @requires(fields: "title") of the field 'a' of the type named 'Post' is not valid: the type has no key, so that it is never sent to this subgraph (b, line 10)`,
			`REQUIRES_INVALID_FIELD: @requires(fields: "nope") of the field 'a' of the type named 'User' is not valid: 'User' has no field 'nope' in this subgraph (b, line 4)`,
			`REQUIRES_FIELDS_MISSING_EXTERNAL: @requires(fields: "age") of the field 'b' of the type named 'User' is not valid: 'User.age' must be marked @external in this subgraph (b, line 5)`,
			`PROVIDES_NOT_ON_ENTITY: @provides(fields: "title") of the field 'c' of the type named 'User' is not valid: 'Post' is not an entity (b, line 6)`,
			`PROVIDES_INVALID_FIELD: @provides(fields: "nope") of the field 'd' of the type named 'User' is not valid: 'User' has no field 'nope' in this subgraph (b, line 7)`,
			`PROVIDES_FIELDS_MISSING_EXTERNAL: @provides(fields: "age") of the field 'e' of the type named 'User' is not valid: 'User.age' must be marked @external in this subgraph (b, line 8)`,
		},
	},
	{
		name:      "root names that other types have",
		subgraphs: []string{`schema { query: Root } type Root { a: Query } type Query { b: Int }`},
		want:      []string{"ROOT_NAME_TAKEN: the type named 'Query' must be the query type, or have another name (a, line 1)"},
	},
	{
		name:      "subgraphs that are not valid by themselves",
		subgraphs: []string{`type Query { a: Nope a: Int }`, "type Query {\n a Int }", `type T { a: Int @unknown }`},
		want: []string{
			`INVALID_SUBGRAPH: Unknown type "Nope". (a, line 1)`,
			`INVALID_SUBGRAPH: field 'Query.a' can only be defined once (a, line 1)`,
			`INVALID_SUBGRAPH: Syntax Error: Expected ":", found Name "Int". (b, line 2)`,
			`INVALID_SUBGRAPH: Unknown directive "@unknown". (c, line 1)`,
		},
	},
	{
		name:      "a schema that is not valid as a whole",
		subgraphs: []string{`type Query { n: N } interface N { x: Int } type T implements N { x: Int }`, `extend interface N { y: Int } extend type Query { y: N }`},
		want:      []string{"INVALID_SUPERGRAPH: type 'T' does not implement field 'y' from interface 'N': in the composed schema (a, line 1)"},
	},
	{
		name:      "Federation 2: several subgraphs own an entity",
		subgraphs: []string{link + user, link + `type User @key(fields: "id") { id: ID! age: Int name: String }`, link + `type User @key(fields: "id") { id: ID! age: Int }`},
		want: []string{
			"FIELD_DEFINED_TWICE: the field 'age' of the type named 'User' is resolved by more than one subgraph: mark it @external where it is resolved elsewhere, or @shareable everywhere (b, line 2, c, line 2)",
			"FIELD_DEFINED_TWICE: the field 'name' of the type named 'User' is resolved by more than one subgraph: mark it @external where it is resolved elsewhere, or @shareable everywhere (a, line 2, b, line 2)",
		},
	},
	{
		name: "Federation 2: features that are not supported",
		subgraphs: []string{`extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key", "@policy", {name: "@tag", as: "@label"}])
			@link(url: "https://example.com/own/v1")
			type Query { a: A @inaccessible }
			interface A @key(fields: "id") { id: ID! @override(from: "b") }`},
		want: []string{
			`UNSUPPORTED_FEATURE: the schema uses a feature of federation that is not supported: @policy (a, line 1)`,
			`UNSUPPORTED_FEATURE: the schema uses a feature of federation that is not supported: import of federation under the name @label; import it under its own name (a, line 1)`,
			`UNSUPPORTED_FEATURE: the schema uses a feature of federation that is not supported: @link to https://example.com/own/v1; only https://specs.apollo.dev/federation/ can be linked (a, line 2)`,
			`UNSUPPORTED_FEATURE: the schema uses a feature of federation that is not supported: @inaccessible (a, line 3)`,
			`UNSUPPORTED_FEATURE: the schema uses a feature of federation that is not supported: @key on the interface A; put it on the objects (a, line 4)`,
			`UNSUPPORTED_FEATURE: the schema uses a feature of federation that is not supported: @override (a, line 4)`,
		},
	},
	{
		name: "an entity that no key leads to",
		subgraphs: []string{
			link + `type Query { a: T } type T @key(fields: "x") { x: ID! a: Int }`,
			link + `type Query { b: T } type T @key(fields: "y") { y: ID! b: Int }`,
		},
		want: []string{
			"FIELD_UNREACHABLE: the field 'a' of the type named 'T' cannot be reached: when b returns the object, no key leads to a subgraph that resolves the field (a, line 2, b, line 2)",
			"FIELD_UNREACHABLE: the field 'b' of the type named 'T' cannot be reached: when a returns the object, no key leads to a subgraph that resolves the field (a, line 2, b, line 2)",
			"FIELD_UNREACHABLE: the field 'x' of the type named 'T' cannot be reached: when b returns the object, no key leads to a subgraph that resolves the field (a, line 2, b, line 2)",
			"FIELD_UNREACHABLE: the field 'y' of the type named 'T' cannot be reached: when a returns the object, no key leads to a subgraph that resolves the field (a, line 2, b, line 2)",
		},
	},
	{name: "none", want: []string{"NO_SUBGRAPHS: there are no subgraphs to compose"}},
}
