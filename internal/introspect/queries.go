package introspect

import "strings"

// queries are the introspection queries, from the current specification's to one that
// every server supports. A simpler query than necessary would lose deprecated arguments,
// which operations may still use.
var queries = []string{
	query(features{schemaDescription: true, oneOf: true, inputs: true, specifiedBy: true, repeatable: true}),
	query(features{inputs: true, specifiedBy: true, repeatable: true}),
	query(features{specifiedBy: true, repeatable: true}),
	query(features{}),
}

// subgraphQuery asks for the schema for federation.
const subgraphQuery = `query Introspection { _service { sdl } }`

// features are parts of introspection that some servers refuse.
type features struct {
	specifiedBy       bool // October 2021
	repeatable        bool // October 2021
	schemaDescription bool // October 2021
	inputs            bool // September 2025: deprecation of arguments and input fields
	oneOf             bool // September 2025
}

// wrappers is the number of lists and non-nulls around a type in the query.
const wrappers = 9

// query writes the question.
func query(f features) string {
	optional := func(on bool, text string) string {
		if on {
			return text
		}
		return ""
	}
	all := optional(f.inputs, "(includeDeprecated: true)")
	reference := "kind name"
	for range wrappers {
		reference = "kind name ofType { " + reference + " }"
	}
	return strings.Join([]string{
		"query Introspection {",
		"  __schema {",
		optional(f.schemaDescription, "    description"),
		"    queryType { name }",
		"    mutationType { name }",
		"    subscriptionType { name }",
		"    types { ...Type }",
		"    directives {",
		"      name description locations" + optional(f.repeatable, " isRepeatable"),
		"      args" + all + " { ...Input }",
		"    }",
		"  }",
		"}",
		"fragment Type on __Type {",
		"  kind name description" + optional(f.specifiedBy, " specifiedByURL") + optional(f.oneOf, " isOneOf"),
		"  fields(includeDeprecated: true) {",
		"    name description isDeprecated deprecationReason",
		"    args" + all + " { ...Input }",
		"    type { ...Reference }",
		"  }",
		"  inputFields" + all + " { ...Input }",
		"  interfaces { ...Reference }",
		"  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }",
		"  possibleTypes { ...Reference }",
		"}",
		"fragment Input on __InputValue {",
		"  name description defaultValue" + optional(f.inputs, " isDeprecated deprecationReason"),
		"  type { ...Reference }",
		"}",
		"fragment Reference on __Type { " + reference + " }",
		"",
	}, "\n")
}
