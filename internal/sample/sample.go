// Package sample is a small GraphQL server over fixed data, for demonstrations:
// continents, countries and languages. It answers whatever its schema admits,
// introspection included, by the specification; it is not made for load.
package sample

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// Schema is what the server answers.
const Schema = `"Countries of the world: some of them."
type Query {
  continents: [Continent!]!
  continent(code: ID!): Continent
  countries(continent: ID, first: Int = 100): [Country!]!
  country(code: ID!): Country
  languages: [Language!]!
}

type Continent {
  code: ID!
  name: String!
  countries: [Country!]!
}

type Country {
  "ISO 3166-1 alpha-2"
  code: ID!
  name: String!
  capital: String
  "In millions"
  population: Float!
  continent: Continent!
  languages: [Language!]!
  neighbours: [Country!]!
}

type Language {
  "ISO 639-1"
  code: ID!
  name: String!
  countries: [Country!]!
}
`

// limits keep one call from costing much.
var limits = syntax.Limits{Bytes: 64 << 10, Tokens: 5000, Depth: 20, ValueDepth: 10}

// mostFields bounds the fields of one answer, as lists in lists grow fast.
const mostFields = 50_000

// Server answers operations. It is safe for concurrent use.
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
	return &Server{schema: s, root: (&describer{s}).root(newWorld())}, nil
}

// request is a call as GraphQL over HTTP has it.
type request struct {
	Query         string         `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables"`
}

// Answer runs the operation in a JSON body and returns the status and body of the
// answer.
func (s *Server) Answer(body []byte) (status int, answer []byte) {
	var sent request
	if err := json.Unmarshal(body, &sent); err != nil {
		return 400, failed(&syntax.Error{Message: "The body must be a JSON object with the member query."})
	}
	var doc syntax.Document
	if err := syntax.Parse(&doc, []byte(sent.Query), limits); err != nil {
		return 400, failed(asError(err))
	}
	var v validate.Validator
	if problems := v.Check(s.schema, &doc, validate.Options{Suggestions: true}); len(problems) > 0 {
		return 400, failed(problems...)
	}
	chosen, problem := validate.Select(&doc, sent.OperationName)
	if problem != nil {
		return 400, failed(problem)
	}
	r := &run{schema: s.schema, doc: &doc}
	if problem := r.bind(&doc.Operations[chosen], sent.Variables); problem != nil {
		return 400, failed(problem)
	}
	data, err := r.data(&doc.Operations[chosen], s.root)
	if err != nil {
		return 400, failed(&syntax.Error{Message: err.Error()})
	}
	return 200, data
}

func asError(err error) *syntax.Error {
	if known, ok := err.(*syntax.Error); ok {
		return known
	}
	return &syntax.Error{Message: err.Error()}
}

// failed writes the answer to what cannot be run.
func failed(problems ...*syntax.Error) []byte {
	type entry struct {
		Message   string            `json:"message"`
		Locations []syntax.Location `json:"locations,omitempty"`
	}
	var said struct {
		Errors []entry `json:"errors"`
	}
	for _, p := range problems {
		said.Errors = append(said.Errors, entry{p.Message, p.Locations})
	}
	body, err := json.Marshal(said)
	if err != nil {
		return fmt.Appendf(nil, `{"errors":[{"message":%q}]}`, err)
	}
	return body
}
