package schema

// The places in schemas where directives can stand.
const (
	OnSchema DirectiveLocation = OnVariableDefinition + 1 + iota
	OnScalar
	OnObject
	OnFieldDefinition
	OnArgumentDefinition
	OnInterface
	OnUnion
	OnEnum
	OnEnumValue
	OnInputObject
	OnInputFieldDefinition
)

// locationNames names the places as schemas do, by DirectiveLocation.
var locationNames = [...]string{
	OnQuery:                "QUERY",
	OnMutation:             "MUTATION",
	OnSubscription:         "SUBSCRIPTION",
	OnField:                "FIELD",
	OnFragmentDefinition:   "FRAGMENT_DEFINITION",
	OnFragmentSpread:       "FRAGMENT_SPREAD",
	OnInlineFragment:       "INLINE_FRAGMENT",
	OnVariableDefinition:   "VARIABLE_DEFINITION",
	OnSchema:               "SCHEMA",
	OnScalar:               "SCALAR",
	OnObject:               "OBJECT",
	OnFieldDefinition:      "FIELD_DEFINITION",
	OnArgumentDefinition:   "ARGUMENT_DEFINITION",
	OnInterface:            "INTERFACE",
	OnUnion:                "UNION",
	OnEnum:                 "ENUM",
	OnEnumValue:            "ENUM_VALUE",
	OnInputObject:          "INPUT_OBJECT",
	OnInputFieldDefinition: "INPUT_FIELD_DEFINITION",
}

// String returns the place's name in schemas and error texts: FIELD_DEFINITION.
func (l DirectiveLocation) String() string { return locationNames[l] }

// LocationNamed returns the place of a name such as FIELD_DEFINITION.
func LocationNamed(name string) (DirectiveLocation, bool) {
	for l, known := range locationNames {
		if known == name {
			return DirectiveLocation(l), true
		}
	}
	return 0, false
}
