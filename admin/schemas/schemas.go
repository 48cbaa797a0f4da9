// Package schemas manages the GraphQL schemas of APIs: it checks them when they are
// saved, fetches them from upstreams on demand or on schedule, and reports what a new
// one changes and breaks.
package schemas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/graphql/change"
	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/introspect"
)

// Options say how upstreams are reached.
type Options struct {
	Addresses dialguard.Policy // that upstreams may have
	CAFile    string           // PEM authorities for APIs that name none; "": the system's
	Every     time.Duration    // between checks for schemas that are due; 0: 5 s

	// Secret returns a secret of an organisation that a definition refers to; nil: none is
	// known.
	Secret func(ctx context.Context, org string, ref definition.SecretRef) (string, error)

	// Used asks the gateways which fields of an API were read; nil: they cannot be asked.
	Used func(ctx context.Context, api string) (*Use, error)
}

// fetchWithin bounds fetching a schema while a caller waits.
const fetchWithin = 8 * time.Second

// Keeper manages schemas. It is safe for concurrent use. Make one with New.
type Keeper struct {
	store   *store.Store
	options Options
	log     *slog.Logger
	batch   map[string]*definition.API // see Among
}

// New returns a Keeper of the schemas in a store.
func New(st *store.Store, o Options, log *slog.Logger) *Keeper {
	if o.Every <= 0 {
		o.Every = 5 * time.Second
	}
	return &Keeper{store: st, options: o, log: log}
}

// A Refusal is the answer to a call that was refused.
type Refusal struct {
	Status  int // of HTTP
	Message string
	Errors  []string // every problem, each with its place
	Path    string   // of what problems without a place are about; "": not one thing
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Refused implements rest.Refusal.
func (r *Refusal) Refused() (status int, message string, problems []string) {
	return r.Status, r.Message, r.Errors
}

// About returns the path of what problems without a place are about.
func (r *Refusal) About() string { return r.Path }

// InvalidSchema is the message of every answer that refuses a schema.
const InvalidSchema = "Invalid GraphQL schema"

// Statuses of refusals.
const (
	badRequest = 400
	conflict   = 409
	badGateway = 502
)

// A Problem is one problem of a schema.
type Problem struct {
	// What is wrong, in English.
	Message string `json:"message"`
	// Line of the schema, from 1.
	Line int `json:"line"`
	// Column of the line, from 1, in UTF-16 code units.
	Column int `json:"column"`
}

// Problems returns all problems of a schema.
func Problems(text string) []Problem {
	_, err := schema.Load(text)
	all := []Problem{}
	wrong, ok := errors.AsType[*sdl.Errors](err)
	switch {
	case ok:
		for _, p := range wrong.Problems {
			all = append(all, Problem{p.Message, p.Location.Line, p.Location.Column})
		}
	case err != nil:
		all = append(all, Problem{err.Error(), 1, 1})
	}
	return all
}

// load compiles a schema, or refuses it with every problem.
func load(text string, status int, message string) (*schema.Schema, error) {
	s, err := schema.Load(text)
	if err == nil {
		return s, nil
	}
	r := &Refusal{Status: status, Message: message, Errors: []string{err.Error()}, Path: definition.SchemaPath}
	if wrong, ok := errors.AsType[*sdl.Errors](err); ok {
		r.Errors = wrong.Texts()
	}
	return nil, r
}

// Origin is where the schema of an API to be saved comes from.
type Origin uint8

// The origins.
const (
	Given   Origin = iota // the body had it, or there is none
	Kept                  // the stored schema stays
	Fetched               // it was fetched from the upstream
)

// Complete completes and checks an API of an organisation to be saved. Unread is the error of parsing it.
// A GraphQL API without a schema keeps that of stored, which is nil for a new API, or
// gets that of its upstream. A subgraph with a schema for federation gets the schema that
// this makes; a supergraph is composed. The operations in the definition are checked as well.
func (k *Keeper) Complete(ctx context.Context, org string, api *definition.API, unread error, stored *definition.API) (from Origin, err error) {
	lacking, rest := onlySchemaLacks(api, unread)
	if rest != nil || !api.IsGraphQL() {
		return Given, rest
	}
	switch {
	case api.IsSupergraph():
		if err := k.compose(ctx, org, api, stored); err != nil {
			return Given, err
		}
	case api.IsSubgraph() && api.GraphQL.SubgraphSDL() != "":
		if err := serve(api); err != nil {
			return Given, err
		}
	case lacking && hasSchema(stored):
		from, api.GraphQL.Schema = Kept, stored.GraphQL.Schema
		if api.IsSubgraph() && stored.IsSubgraph() && stored.GraphQL.SubgraphSDL() != "" {
			setSDL(api, stored.GraphQL.SubgraphSDL())
		}
		if api.GraphQL.LastSchemaUpdate == "" {
			api.GraphQL.LastSchemaUpdate = stored.GraphQL.LastSchemaUpdate
		}
	case lacking:
		if err := k.fill(ctx, org, api); err != nil {
			return Given, err
		}
		from = Fetched
	}
	return from, check(api)
}

// Validate returns the error that Complete would return for a new API, and warnings. It
// does not call the upstream.
func (k *Keeper) Validate(ctx context.Context, org string, api *definition.API, unread error) (warnings []string, err error) {
	lacking, rest := onlySchemaLacks(api, unread)
	switch {
	case rest != nil || !api.IsGraphQL():
		return nil, rest
	case api.IsSupergraph():
		err = k.compose(ctx, org, api, nil)
	case api.IsSubgraph() && api.GraphQL.SubgraphSDL() != "":
		err = serve(api)
	case lacking:
		return []string{definition.SchemaPath + ": is not there; it will be fetched from the upstream when the definition is saved"}, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, check(api)
}

// check refuses an API with an invalid schema, or with operations that are invalid
// against it: gateways would not run them.
func check(api *definition.API) error {
	s, err := load(api.GraphQL.Schema, badRequest, InvalidSchema)
	if err != nil {
		return err
	}
	var problems definition.Problems
	for _, o := range change.Operations(api) {
		for _, p := range o.Problems(s) {
			problems = append(problems, definition.Problem{Path: o.Path, Message: o.Describe(p)})
		}
	}
	problems = append(problems, change.DataGraph(api, s)...)
	if len(problems) > 0 {
		return &problems
	}
	return nil
}

// onlySchemaLacks reports whether an API came without the schema of its upstream, and
// returns the other problems.
func onlySchemaLacks(api *definition.API, unread error) (lacking bool, rest error) {
	problems, ok := errors.AsType[*definition.Problems](unread)
	if !ok || api == nil || !api.IsGraphQL() || strings.TrimSpace(api.GraphQL.Schema) != "" {
		return false, unread
	}
	var others definition.Problems
	for _, p := range *problems {
		if p.Path == definition.SchemaPath {
			lacking = true
		} else {
			others = append(others, p)
		}
	}
	if len(others) > 0 {
		return lacking, &others
	}
	return lacking, nil
}

func hasSchema(api *definition.API) bool {
	return api != nil && api.IsGraphQL() && strings.TrimSpace(api.GraphQL.Schema) != ""
}

// fill fetches the schema of an API that came without one.
func (k *Keeper) fill(ctx context.Context, org string, api *definition.API) error {
	got, err := k.fetch(ctx, org, api, fetchWithin)
	if refused, ok := errors.AsType[*introspect.Error](err); ok {
		return &Refusal{
			Status: badRequest, Message: "The schema is missing, and it could not be fetched from the upstream",
			Errors: []string{definition.SchemaPath + ": introspecting the upstream: " + refused.Message + "; " + refused.Remedy()},
		}
	}
	if refused, ok := errors.AsType[*Refusal](err); ok {
		refused.Status = badRequest // the definition is incomplete, for whatever reason
	}
	if err != nil {
		return err
	}
	if _, err := load(got.text, badRequest, InvalidSchema+" of the upstream"); err != nil {
		return err
	}
	setSchema(api, got)
	return nil
}

// fetched is a schema that came from an upstream.
type fetched struct {
	text string // that operations are held against
	sdl  string // of a subgraph, with the directives of federation; "": it reports none
}

// setSchema gives an API the schema of its upstream.
func setSchema(api *definition.API, got *fetched) {
	api.GraphQL.Schema = got.text
	api.GraphQL.LastSchemaUpdate = time.Now().UTC().Format(time.RFC3339)
	if got.sdl != "" {
		setSDL(api, got.sdl)
	}
}

// setSDL gives a subgraph its schema for federation.
func setSDL(api *definition.API, sdl string) {
	if api.GraphQL.Subgraph == nil {
		api.GraphQL.Subgraph = new(definition.GraphQLSubgraph)
	}
	api.GraphQL.Subgraph.SDL = sdl
}

// fetch fetches the schema from the upstream of an API of an organisation: for a subgraph
// that for federation, or, if it has none yet and the upstream does not report one, that
// of introspection.
func (k *Keeper) fetch(ctx context.Context, org string, api *definition.API, within time.Duration) (*fetched, error) {
	if api.IsDataGraph() {
		return nil, &Refusal{Status: badRequest, Message: InvalidSchema, Errors: []string{definition.SchemaPath + ": is required: a data graph has no upstream that has its schema"}, Path: definition.SchemaPath}
	}
	from, err := introspect.SourceOf(api, k.options.CAFile)
	if err != nil {
		return nil, err
	}
	if from.Headers, err = k.withSecrets(ctx, org, api, from.Headers); err != nil {
		return nil, err
	}
	from.Addresses, from.Timeout = k.options.Addresses, within
	if !api.IsSubgraph() {
		text, err := introspect.Fetch(ctx, from)
		return &fetched{text: text}, err
	}
	text, err := introspect.FetchSubgraph(ctx, from)
	if err == nil {
		return served(text)
	}
	none, ok := errors.AsType[*introspect.Error](err)
	if !ok || none.Cause != introspect.NoSDL || api.GraphQL.SubgraphSDL() != "" {
		return nil, err
	}
	text, err = introspect.Fetch(ctx, from)
	if refused, ok := errors.AsType[*introspect.Error](err); ok {
		refused.Message = none.Message + "; and " + refused.Message
	}
	return &fetched{text: text}, err
}

// served returns the schema that the schema for federation of an upstream makes.
func served(text string) (*fetched, error) {
	text = strings.TrimSpace(text)
	schema, found := compose.Served(compose.Subgraph{Name: "the upstream", SDL: text})
	if len(found) == 0 {
		return &fetched{schema, text}, nil
	}
	r := &Refusal{Status: badGateway, Message: "The upstream's schema for federation is invalid", Path: definition.SchemaPath}
	for i := range found {
		r.Errors = append(r.Errors, string(found[i].Code)+": "+found[i].String())
	}
	return nil, r
}

// withSecrets returns the headers for introspection with secrets in place of references.
func (k *Keeper) withSecrets(ctx context.Context, org string, api *definition.API, headers map[string]string) (map[string]string, error) {
	if api.LiteralSecrets || k.options.Secret == nil {
		return headers, nil
	}
	with := make(map[string]string, len(headers))
	for name, value := range headers {
		text, err := definition.ReplaceSecrets(value, func(ref definition.SecretRef) (string, error) { return k.options.Secret(ctx, org, ref) })
		if errors.Is(err, store.ErrUnavailable) {
			return nil, err
		}
		if err != nil {
			return nil, &introspect.Error{Cause: introspect.Unusable, Message: fmt.Sprintf("graphql.proxy.auth_headers[%q]: %s", name, err)}
		}
		with[name] = text
	}
	return with, nil
}
