package schemas

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/change"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/introspect"
)

// listed bounds the changes and breaks in one report.
const listed = 1000

// A Report is the result of fetching a schema.
type Report struct {
	// Whether the schema was stored and goes to the gateways.
	Applied bool `json:"applied"`
	Comparison
	// What the schema means for the supergraphs that name the API, once they are composed anew.
	Supergraphs []*ClientEffect `json:"supergraphs" nullable:"false"`
	// Whether the schema for federation of a subgraph differs, in more than layout.
	SDLChanged bool `json:"sdl_changed"`
	// SHA-256 of the upstream's schema.
	SchemaHash string `json:"schema_hash"`
	// SHA-256 of the schema that was stored before; empty: none was.
	PreviousHash string `json:"previous_hash"`
	Version      int64  `json:"-"` // of the API, afterwards
}

// Message returns a sentence about the result.
func (r *Report) Message() string {
	switch {
	case r.Applied:
		return "Schema updated"
	case r.SDLChanged && r.Total == 0:
		return "Schema differs in what supergraphs see of it; it was not stored"
	case r.SchemaHash == r.PreviousHash:
		return "Schema is up to date"
	case r.Total == 0 && r.PreviousHash != "":
		return "Schema differs in descriptions, order or layout only; it was not stored"
	}
	return "Schema differs; it was not stored"
}

// SyncOptions are the options of Sync.
type SyncOptions struct {
	Have  int64 // the version of the API that the caller saw; 0: any
	Apply bool  // store the schema
	Force bool  // even if gateways would refuse the API
}

// Sync fetches the schema of an API from its upstream, compares it and, if the options
// say so, stores it as a change by the author. Nothing changes when it returns an error.
// A failure of the upstream is a *Refusal.
func (k *Keeper) Sync(ctx context.Context, by store.Author, id string, w SyncOptions) (*Report, error) {
	found, err := k.find(ctx, by.Org, id, w.Have, fetchWithin)
	if err != nil {
		return nil, err
	}
	sdl := cmp.Or(found.sdl, found.text)
	if found.report.Supergraphs, err = k.supergraphs(ctx, by.Org, id, sdl); err != nil {
		return nil, err
	}
	k.CountReads(ctx, found.report.Supergraphs, &found.report.Comparison)
	if !w.Apply || found.text == found.api.GraphQL.Schema && !found.report.SDLChanged {
		return found.report, k.store.NoteSchemaSync(ctx, by.Org, id, "")
	}
	if broken := found.report.unservable; broken != nil && !w.Force {
		return nil, &Refusal{
			Status: conflict, Errors: broken[:min(len(broken), listed)],
			Message: "The upstream's schema breaks persisted queries, and gateways would refuse the API; change them together with graphql.schema, or add ?force=true and change them then",
		}
	}
	return found.report, k.apply(ctx, by, found)
}

// finding is a fetched schema with its API.
type finding struct {
	api *definition.API
	*fetched
	report *Report
}

// find fetches and compares the schema. It stores failures of the upstream.
func (k *Keeper) find(ctx context.Context, org, id string, have int64, within time.Duration) (*finding, error) {
	row, err := k.store.APIByID(ctx, org, id)
	if err != nil {
		return nil, err
	}
	if have != 0 && have != row.Version {
		return nil, &store.ConflictError{Kind: store.Stale, Current: row.Version}
	}
	f := &finding{report: &Report{Version: row.Version}}
	if f.api, err = read(&row); err != nil {
		return nil, err
	}
	if err := syncable(f.api); err != nil {
		return nil, err
	}
	now, err := k.fetchAndCheck(ctx, org, f, within)
	if refused, ok := errors.AsType[*Refusal](err); ok {
		return nil, errors.Join(err, k.store.NoteSchemaSync(ctx, org, id, refused.text()))
	}
	if err != nil {
		return nil, err
	}
	f.report.SDLChanged = f.sdl != "" && !slices.Equal(strings.Fields(f.sdl), strings.Fields(f.api.GraphQL.SubgraphSDL()))
	f.report.PreviousHash, f.report.SchemaHash = store.HashSchema(f.api.GraphQL.Schema), store.HashSchema(f.text)
	return f, f.report.compare(f.api.GraphQL.Schema, now, f.api, k.holding(ctx, org, id))
}

// syncable refuses APIs whose schema is not that of a single upstream.
func syncable(api *definition.API) error {
	switch {
	case !api.IsGraphQL():
		return &Refusal{Status: badRequest, Message: "The API has no GraphQL schema: graphql.enabled is not true"}
	case !api.HasUpstreamSchema():
		return &Refusal{Status: badRequest, Message: fmt.Sprintf("The schema is not that of an upstream: graphql.execution_mode is %q, and only %q and %q can be synchronised", api.GraphQL.ExecutionMode, definition.ModeProxy, definition.ModeSubgraph)}
	}
	return nil
}

// fetchAndCheck fetches the schema and checks it.
func (k *Keeper) fetchAndCheck(ctx context.Context, org string, f *finding, within time.Duration) (*schema.Schema, error) {
	got, err := k.fetch(ctx, org, f.api, within)
	if refused, ok := errors.AsType[*introspect.Error](err); ok {
		r := &Refusal{Status: badGateway, Message: "The schema could not be fetched; the stored one stays", Errors: []string{refused.Message + "; " + refused.Remedy()}}
		if refused.Cause == introspect.Unusable || refused.Cause == introspect.Forbidden {
			r.Status = badRequest // our configuration has to change, not the upstream
		}
		return nil, r
	}
	if err != nil {
		return nil, err
	}
	f.fetched = got
	return load(got.text, badGateway, "The upstream's schema is invalid; the stored one stays")
}

// text returns the refusal on one line, as it is stored.
func (r *Refusal) text() string {
	if len(r.Errors) == 0 {
		return r.Message
	}
	return r.Message + ": " + r.Errors[0]
}

// apply stores the schema.
func (k *Keeper) apply(ctx context.Context, by store.Author, f *finding) error {
	setSchema(f.api, f.fetched)
	_, err := k.store.Publish(ctx, by, func(ctx context.Context, c *store.Change) (err error) {
		c.Fetched(true)
		f.report.Version, err = c.UpdateAPI(ctx, f.api, f.report.Version)
		return err
	})
	if err != nil {
		return err
	}
	f.report.Applied = true
	k.log.Info("schema updated from the upstream", "api", f.api.ID, "by", by.Name, "breaking", f.report.Breaking, "broken", f.report.BrokenTotal)
	return k.store.NoteSchemaSync(ctx, by.Org, f.api.ID, "")
}

// holders returns the policies and keys of an organisation that have an entry for
// an API.
func (k *Keeper) holders(ctx context.Context, org, api string) ([]change.Holder, error) {
	policies, _, err := k.store.ListPolicies(ctx, org, store.PolicyFilter{API: api}, "name", store.Page{})
	if err != nil {
		return nil, err
	}
	var all []change.Holder
	for _, row := range policies {
		p := new(definition.Policy)
		if err := json.Unmarshal(row.Body, p); err != nil {
			return nil, fmt.Errorf("reading policy %s: %w", row.ID, err)
		}
		all = append(all, change.Holder{Policy: row.ID, Access: p.AccessRights[api]})
	}
	for page := (store.Page{Max: listed}); ; page.Skip += page.Max {
		keys, _, err := k.store.ListKeys(ctx, org, store.KeyFilter{API: api}, page)
		if err != nil {
			return nil, err
		}
		for _, row := range keys {
			session := new(definition.Session)
			if err := json.Unmarshal(row.Body, session); err != nil {
				return nil, fmt.Errorf("reading key %.12s: %w", row.KeyHash, err)
			}
			if a := session.AccessRights[api]; hasRules(a) {
				all = append(all, change.Holder{Key: row.KeyHash, Access: a})
			}
		}
		if len(keys) < page.Max {
			return all, nil
		}
	}
}

// hasRules reports whether an entry has field rules; those of most keys have none.
func hasRules(a *definition.Access) bool {
	return a != nil && len(a.RestrictedTypes)+len(a.AllowedTypes)+len(a.FieldAccessRights) > 0
}
