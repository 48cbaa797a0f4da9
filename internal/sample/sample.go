// Package sample is a small GraphQL server over fixed data, for demonstrations:
// continents, countries and languages. It supports introspection, and is not made
// for load. The same countries are also two subgraphs, with a REST service beside them.
package sample

import (
	_ "embed" // the schema and the data
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// Schema is the schema of the server.
//
//go:embed schema.graphql
var Schema string

//go:embed countries.json
var countries []byte

// introspection is the response to a full introspection query of Schema.
//
//go:embed introspection.json
var introspection []byte

// object is a value with fields: nil, a leaf, an object, a resolver, or a []any.
type object = map[string]any

// A resolver computes a field that has arguments.
type resolver = func(args object) any

// Server executes operations. It is safe for concurrent use.
type Server struct {
	schema *schema.Schema
	root   object
}

// New returns a Server of the fixed data.
func New() (*Server, error) {
	s, err := schema.Load(Schema)
	if err != nil {
		return nil, err
	}
	root, _, err := world()
	meta := object{}
	if err := errors.Join(err, json.Unmarshal(introspection, &meta)); err != nil {
		return nil, err
	}
	types := meta["types"].([]any)
	for _, t := range types {
		for name, value := range t.(object) {
			t.(object)[name] = link(value, types)
		}
	}
	root["__schema"] = link(meta, types)
	root["__type"] = resolver(func(args object) any { return find(types, "name", args["name"]) })
	return &Server{schema: s, root: root}, nil
}

// world returns the fixed data, whose objects refer to each other, and its countries.
func world() (root object, all []any, err error) {
	if err := json.Unmarshal(countries, &root); err != nil {
		return nil, nil, err
	}
	continents, languages := root["continents"].([]any), root["languages"].([]any)
	all = root["countries"].([]any)
	for _, c := range all {
		country := c.(object)
		country["continent"] = find(continents, "code", country["continent"])
		for name, from := range map[string][]any{"languages": languages, "neighbours": all} {
			codes := country[name].([]any)
			for i := range codes {
				codes[i] = find(from, "code", codes[i])
			}
		}
	}
	for _, of := range slices.Concat(continents, languages) {
		of.(object)["countries"] = slices.DeleteFunc(slices.Clone(all), func(c any) bool {
			continent, spoken := c.(object)["continent"].(object), c.(object)["languages"].([]any)
			return continent["code"] != of.(object)["code"] && find(spoken, "code", of.(object)["code"]) == nil
		})
	}
	root["continent"] = resolver(func(args object) any { return find(continents, "code", code(args["code"])) })
	root["country"] = resolver(func(args object) any { return find(all, "code", code(args["code"])) })
	root["countries"] = resolver(func(args object) any {
		some := all
		if args["continent"] != nil {
			some = slices.DeleteFunc(slices.Clone(all), func(c any) bool {
				return c.(object)["continent"].(object)["code"] != code(args["continent"])
			})
		}
		if first, ok := args["first"].(float64); ok {
			some = some[:min(len(some), max(int(first), 0))]
		}
		return some
	})
	return root, all, nil
}

// find returns the object whose member has a value, or nil.
func find(from []any, member string, value any) any {
	for _, o := range from {
		if o.(object)[member] == value {
			return o
		}
	}
	return nil
}

// code returns the value of an argument of type ID, which may be a number.
func code(id any) any {
	if n, ok := id.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	text, _ := id.(string)
	return strings.ToUpper(text)
}

// link replaces references to types of the schema by these types.
func link(value any, types []any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = link(v[i], types)
		}
	case object:
		if t := find(types, "name", v["name"]); t != nil && v["kind"] != nil {
			return t
		}
		for name := range v {
			v[name] = link(v[name], types)
		}
	}
	return value
}

// limits bound the cost of one operation.
var limits = syntax.Limits{Bytes: 64 << 10, Tokens: 5000, Depth: 20, ValueDepth: 10}

// Answer executes the operation in a JSON body and returns the status and the body
// of the response.
func (s *Server) Answer(body []byte) (status int, response []byte) {
	var request struct {
		Query         string `json:"query"`
		OperationName string `json:"operationName"`
		Variables     object `json:"variables"`
	}
	if json.Unmarshal(body, &request) != nil {
		return failed(&syntax.Error{Message: "The body must be a JSON object with the member query."})
	}
	var doc syntax.Document
	if err := syntax.Parse(&doc, []byte(request.Query), limits); err != nil {
		return failed(err)
	}
	var v validate.Validator
	for _, problem := range v.Check(s.schema, &doc, validate.Options{Suggestions: true}) {
		return failed(problem)
	}
	chosen, problem := validate.Select(&doc, request.OperationName)
	if problem != nil {
		return failed(problem)
	}
	r := &run{schema: s.schema, doc: &doc, variables: request.Variables}
	data, err := r.operation(&doc.Operations[chosen], s.root)
	if err != nil {
		return failed(err)
	}
	response, err = json.Marshal(object{"data": data})
	if err != nil {
		return failed(err)
	}
	return 200, response
}

func failed(err error) (status int, response []byte) {
	entry := object{"message": err.Error()}
	if located, ok := errors.AsType[*syntax.Error](err); ok {
		entry["message"], entry["locations"] = located.Message, located.Locations
	}
	response, _ = json.Marshal(object{"errors": []any{entry}}) // texts and numbers
	return 400, response
}
