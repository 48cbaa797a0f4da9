// Package schemas looks after the GraphQL schemas of APIs: it checks them when
// they are saved, fetches them from upstreams when asked to or on schedule, and
// says what a new one changes and breaks.
package schemas

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/change"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/guard"
	"github.com/sluicegate/sluice/internal/introspect"
)

// Options say how upstreams are reached.
type Options struct {
	Addresses guard.Policy  // which they may have
	CAFile    string        // PEM authorities for APIs that name none; "": the system's
	Every     time.Duration // between looks at what is due; 0: 5 s
	Publish   store.Publish // how a schema that was fetched is stored; nil: the store's
}

// fetchWithin bounds fetching a schema while somebody waits for the answer.
const fetchWithin = 8 * time.Second

// Keeper looks after schemas. It is safe for concurrent use. Make one with New.
type Keeper struct {
	store   *store.Store
	options Options
	log     *slog.Logger
}

// New returns a Keeper of the schemas in a store.
func New(st *store.Store, o Options, log *slog.Logger) *Keeper {
	if o.Every <= 0 {
		o.Every = 5 * time.Second
	}
	if o.Publish == nil {
		o.Publish = st.Publish
	}
	return &Keeper{store: st, options: o, log: log}
}

// A Refusal is why something was not done, as it is answered.
type Refusal struct {
	Status  int // of HTTP
	Message string
	Errors  []string // every problem, each with its place
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Refused returns how it is answered.
func (r *Refusal) Refused() (status int, message string, problems []string) {
	return r.Status, r.Message, r.Errors
}

// InvalidSchema is the message of every answer that refuses a schema.
const InvalidSchema = "Invalid GraphQL schema"

// Statuses of refusals.
const (
	badRequest = 400
	conflict   = 409
	badGateway = 502
)

// A Problem is one thing that is wrong with a schema.
type Problem struct {
	Message string `json:"message"`
	Line    int    `json:"line" doc:"from 1"`
	Column  int    `json:"column" doc:"from 1, in UTF-16 code units"`
}

// Problems returns everything that is wrong with the text of a schema.
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
	r := &Refusal{Status: status, Message: message, Errors: []string{err.Error()}}
	if wrong, ok := errors.AsType[*sdl.Errors](err); ok {
		r.Errors = wrong.Texts()
	}
	return nil, r
}

// Origin says where the schema of an API that is to be saved comes from.
type Origin uint8

// The origins.
const (
	Given   Origin = iota // it was sent, or there is none
	Kept                  // what was stored stays
	Fetched               // the upstream gave it
)

// Complete makes an API ready to be saved, as it was read with the error that its
// reading ended with. A GraphQL API that was sent without a schema keeps the one
// that stored has, which is nil for a new API, or gets that of its upstream. The
// schema is checked, and so are the operations that the definition holds.
func (k *Keeper) Complete(ctx context.Context, api *definition.API, unread error, stored *definition.API) (from Origin, err error) {
	lacking, rest := onlySchemaLacks(api, unread)
	if rest != nil || !api.IsGraphQL() {
		return Given, rest
	}
	switch {
	case lacking && hasSchema(stored):
		from, api.GraphQL.Schema = Kept, stored.GraphQL.Schema
		if api.GraphQL.LastSchemaUpdate == "" {
			api.GraphQL.LastSchemaUpdate = stored.GraphQL.LastSchemaUpdate
		}
	case lacking:
		if err := k.fill(ctx, api); err != nil {
			return Given, err
		}
		from = Fetched
	}
	return from, check(api)
}

// Validate says what Complete would say to a new API, and what it would do: the
// upstream is not called.
func Validate(api *definition.API, unread error) (warnings []string, err error) {
	lacking, rest := onlySchemaLacks(api, unread)
	switch {
	case rest != nil || !api.IsGraphQL():
		return nil, rest
	case lacking:
		return []string{definition.SchemaPath + ": is not there; it will be fetched from the upstream when the definition is saved"}, nil
	}
	return nil, check(api)
}

// check refuses an API whose schema is broken, or which holds operations that the
// schema does not admit: gateways would not run them.
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
	if len(problems) > 0 {
		return &problems
	}
	return nil
}

// onlySchemaLacks tells whether the API of a proxy came without its schema, and
// returns what else is wrong.
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

// fill fetches the schema of an API that came without.
func (k *Keeper) fill(ctx context.Context, api *definition.API) error {
	text, err := k.fetch(ctx, api, fetchWithin)
	if refused, ok := errors.AsType[*introspect.Error](err); ok {
		return &Refusal{
			Status: badRequest, Message: "The schema is missing, and it could not be fetched from the upstream",
			Errors: []string{definition.SchemaPath + ": introspecting the upstream: " + refused.Message + "; " + refused.Remedy()},
		}
	}
	if err != nil {
		return err
	}
	if _, err := load(text, badRequest, InvalidSchema+" of the upstream"); err != nil {
		return err
	}
	take(api, text)
	return nil
}

// take gives an API the schema of its upstream.
func take(api *definition.API, text string) {
	api.GraphQL.Schema = text
	api.GraphQL.LastSchemaUpdate = time.Now().UTC().Format(time.RFC3339)
}

// fetch asks the upstream of an API for its schema.
func (k *Keeper) fetch(ctx context.Context, api *definition.API, within time.Duration) (string, error) {
	from, err := introspect.SourceOf(api, k.options.CAFile)
	if err != nil {
		return "", err
	}
	from.Addresses, from.Timeout = k.options.Addresses, within
	return introspect.Fetch(ctx, from)
}
