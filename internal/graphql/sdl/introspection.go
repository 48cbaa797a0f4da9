package sdl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// FromIntrospection turns the answer of an introspection query into the text of
// a schema. It takes the whole answer, or its data: an object with "__schema".
// What every schema has is left out; types and directives are in order of name,
// and what belongs to them is in the order of the answer.
//
// The text can be parsed, but is not checked: answers can describe schemas that
// break the rules. The error says what is wrong with the answer and where.
func FromIntrospection(answer []byte) (string, error) {
	said, err := decodeAnswer(answer)
	if err != nil {
		return "", fmt.Errorf("reading an introspection: %w", err)
	}
	p := &printer{}
	p.schema(said)
	if p.err != nil {
		return "", fmt.Errorf("reading an introspection: %w", p.err)
	}
	return p.b.String(), nil
}

// These are the parts of an answer. Only names, kinds and types have to be there:
// servers of older specifications do not say all the rest.
type (
	saidSchema struct {
		Description      string          `json:"description"`
		QueryType        *saidRef        `json:"queryType"`
		MutationType     *saidRef        `json:"mutationType"`
		SubscriptionType *saidRef        `json:"subscriptionType"`
		Types            []saidType      `json:"types"`
		Directives       []saidDirective `json:"directives"`
	}
	saidType struct {
		Kind           string       `json:"kind"`
		Name           string       `json:"name"`
		Description    string       `json:"description"`
		SpecifiedByURL string       `json:"specifiedByURL"`
		IsOneOf        bool         `json:"isOneOf"`
		Fields         []saidField  `json:"fields"`
		InputFields    []saidInput  `json:"inputFields"`
		Interfaces     []saidRef    `json:"interfaces"`
		EnumValues     []saidMember `json:"enumValues"`
		PossibleTypes  []saidRef    `json:"possibleTypes"`
	}
	saidMember struct {
		Name              string  `json:"name"`
		Description       string  `json:"description"`
		IsDeprecated      bool    `json:"isDeprecated"`
		DeprecationReason *string `json:"deprecationReason"`
	}
	saidField struct {
		saidMember
		Args []saidInput `json:"args"`
		Type *saidRef    `json:"type"`
	}
	saidInput struct {
		saidMember
		Type         *saidRef `json:"type"`
		DefaultValue *string  `json:"defaultValue"`
	}
	saidDirective struct {
		Name         string      `json:"name"`
		Description  string      `json:"description"`
		IsRepeatable bool        `json:"isRepeatable"`
		Locations    []string    `json:"locations"`
		Args         []saidInput `json:"args"`
	}
	saidRef struct {
		Kind   string   `json:"kind"`
		Name   string   `json:"name"`
		OfType *saidRef `json:"ofType"`
	}
)

// decodeAnswer reads the schema out of an answer.
func decodeAnswer(answer []byte) (*saidSchema, error) {
	var whole struct {
		Data *struct {
			Schema *saidSchema `json:"__schema"`
		} `json:"data"`
		Schema *saidSchema `json:"__schema"`
	}
	if err := json.Unmarshal(answer, &whole); err != nil {
		return nil, unreadableJSON(err)
	}
	said := whole.Schema
	if said == nil && whole.Data != nil {
		said = whole.Data.Schema
	}
	switch {
	case said == nil:
		return nil, errors.New(`it has no "__schema"`)
	case len(said.Types) == 0:
		return nil, errors.New(`"__schema" has no "types"`)
	case said.QueryType == nil:
		return nil, errors.New(`"__schema" has no "queryType"`)
	}
	return said, nil
}

// unreadableJSON says what is wrong without the names of our types.
func unreadableJSON(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		wanted := map[string]string{"string": "text", "bool": "true or false", "slice": "a list", "struct": "an object", "ptr": "an object"}
		at := strings.ReplaceAll(wrong.Field, "saidMember.", "")
		return fmt.Errorf("%q is a JSON %s and has to be %s", at, wrong.Value, wanted[wrong.Type.Kind().String()])
	}
	return fmt.Errorf("it is not JSON: %w", err)
}
