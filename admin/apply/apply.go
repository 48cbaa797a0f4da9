// Package apply changes many APIs, policies and keys in one transaction, after checking
// them together.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/redact"
)

// A Batch is the body of a call that changes many objects. Objects that it does not name
// stay as they are.
type Batch struct {
	// Revision that must be in force, or the call is refused with 409; 0: none was made yet. Default:
	// any revision.
	Expect *int64 `json:"expect_revision,omitempty"`
	// Whether everything is checked and nothing is changed.
	DryRun bool `json:"dry_run,omitempty"`
	// Reason for the change, for the history. Default: none.
	// Example: "rates for the spring campaign"
	Reason string `json:"reason,omitempty"`
	// Whether objects with members that are kept and have no effect are refused.
	Strict bool `json:"strict,omitempty"`
	// Definitions to create or replace, each with its api_id.
	APIs []rest.Raw[definition.API] `json:"apis,omitempty"`
	// Policies to create or replace, each with its id.
	Policies []rest.Raw[definition.Policy] `json:"policies,omitempty"`
	// Keys to create or replace by their hashes, or to make anew.
	Keys []Key `json:"keys,omitempty"`
	// Objects to delete.
	Delete Deletion `json:"delete,omitzero"`
}

// A Key is a session for an existing hash, or for a key to be generated.
type Key struct {
	// Hash of the key to create or replace.
	Hash string `json:"key_hash,omitempty"`
	// Whether a key is made, in place of key_hash, and answered this once.
	Generate bool `json:"generate,omitempty"`
	// Rights, limits and metadata of the key.
	// Example: {"alias": "shop", "apply_policies": ["starter"]}
	Session rest.Raw[definition.Session] `json:"session"`
}

// A NewKey is a generated key. It is not stored, and cannot be shown again.
type NewKey struct {
	// Place of the key among the keys of the batch, from 0.
	At int `json:"at"`
	// Alias of the key.
	Name string `json:"name"`
	// The key itself. It is not stored, and cannot be shown again.
	Key string `json:"key"`
	// Hash of the key, which names it in later calls.
	Hash string `json:"key_hash"`
}

// A Deletion names objects to be deleted.
type Deletion struct {
	// Ids of APIs to delete.
	APIs []string `json:"apis,omitempty"`
	// Ids of policies to delete.
	Policies []string `json:"policies,omitempty"`
}

// An Outcome is what a batch changed, or would change.
type Outcome struct {
	// Revision that was made; with dry_run the one that would be.
	Revision int64 `json:"revision"`
	// Whether nothing was changed.
	DryRun bool `json:"dry_run"`
	// APIs and policies that were created, updated or deleted, or would be.
	Changes []store.ObjectChange `json:"changes"`
	// Number of keys that were created or replaced, or would be.
	Keys int `json:"keys"`
	// Keys that were made; left out with dry_run.
	Made []NewKey `json:"new_keys,omitempty"`
	// What is accepted and has no effect, or probably not the intended one, each with the place where
	// it is.
	Warnings []string `json:"warnings,omitempty"`

	hashes []string
}

// Hashes returns the hashes of the changed keys, which are to be delivered to the
// gateways.
func (o *Outcome) Hashes() []string { return o.hashes }

// An Applier applies batches. Its fields are required.
type Applier struct {
	Store   *store.Store
	Schemas *schemas.Keeper
	Keys    keys.Service // without Store, Policies and API, which each batch sets
}

// errDryRun rolls back the transaction of a dry run.
var errDryRun = errors.New("dry run")

// Apply makes all changes of a batch, or none. The error is a *schemas.Refusal that
// lists every problem of the batch.
func (a *Applier) Apply(ctx context.Context, by store.Author, b *Batch) (*Outcome, error) {
	r, err := a.read(ctx, by, b)
	if err != nil {
		return nil, err
	}
	ready := &r.batch
	if by.Reason == "" {
		by.Reason = b.Reason
	}
	out := &Outcome{DryRun: b.DryRun, Keys: len(ready.Keys), Warnings: r.warnings}
	for i := range ready.Keys {
		out.hashes = append(append(out.hashes, ready.Keys[i].Others()...), ready.Keys[i].Hash)
	}
	out.Revision, err = a.Store.Publish(ctx, by, func(ctx context.Context, change *store.Change) error {
		if err := change.Apply(ctx, ready); err != nil {
			return err
		}
		if out.Changes = change.Made(); b.DryRun {
			return errDryRun
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return nil, explained(err)
	}
	if !b.DryRun {
		out.Made = r.made
	}
	return out, nil
}

// read checks every object and collects all problems.
func (a *Applier) read(ctx context.Context, by store.Author, b *Batch) (*reading, error) {
	r := &reading{
		applier: a, by: by, strict: b.Strict, apis: make(map[string]*definition.API), members: make(map[string]*definition.API), graphs: make(map[string]*definition.API), policies: make(map[string]*definition.Policy), hashes: make(map[string]bool),
		batch: store.Batch{Expect: -1, DeleteAPIs: b.Delete.APIs, DeletePolicies: b.Delete.Policies},
	}
	if b.Expect != nil {
		r.batch.Expect = *b.Expect
	}
	if len(b.APIs) >= many {
		if err := r.readAll(ctx); err != nil {
			return nil, err
		}
	}
	for i, raw := range b.APIs {
		if err := r.api(ctx, i, raw); err != nil {
			return nil, err
		}
	}
	r.composing = true
	for _, i := range r.supergraphs {
		if err := r.api(ctx, i, b.APIs[i]); err != nil {
			return nil, err
		}
	}
	for i, raw := range b.Policies {
		if err := r.policy(ctx, i, raw); err != nil {
			return nil, err
		}
	}
	for i := range b.Keys {
		if err := r.key(ctx, i, &b.Keys[i]); err != nil {
			return nil, err
		}
	}
	if len(r.wrong) > 0 {
		return nil, &schemas.Refusal{Status: http.StatusBadRequest, Message: "Validation failed", Errors: r.wrong}
	}
	return r, r.effects(ctx)
}

// A reading is a batch that is being read and checked.
type reading struct {
	applier  *Applier
	by       store.Author
	strict   bool
	batch    store.Batch
	apis     map[string]*definition.API
	policies map[string]*definition.Policy
	hashes   map[string]bool
	made     []NewKey // the keys that exist once the batch is stored
	wrong    []string
	warnings []string

	supergraphs []int                      // their places among the APIs; they are read when the others are
	composing   bool                       // they are being read
	members     map[string]*definition.API // APIs that they can be composed of; nil: it has problems
	graphs      map[string]*definition.API // GraphQL APIs as they are stored; nil: new ones

	known  map[string][]byte // stored definitions, if they were all read at once
	legacy []string          // stored legacy hashes; nil: not read yet
}

// many is the number of APIs in a batch from which on reading all stored ones at once is
// faster.
const many = 50

// readAll reads all stored definitions.
func (r *reading) readAll(ctx context.Context) error {
	rows, err := r.applier.Store.Read().APIsOf(ctx, r.by.Org)
	if err != nil {
		return fmt.Errorf("reading the APIs: %w", store.Translate(err))
	}
	r.known = make(map[string][]byte, len(rows))
	for i := range rows {
		r.known[rows[i].ID] = rows[i].Definition
	}
	return nil
}

// definitionOf returns a stored definition, or nil.
func (r *reading) definitionOf(ctx context.Context, id string) ([]byte, error) {
	if r.known != nil {
		return r.known[id], nil
	}
	row, err := r.applier.Store.APIByID(ctx, r.by.Org, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return row.Definition, err
}

// maxWrong bounds the problems in one answer.
const maxWrong = 1000

func (r *reading) add(place, format string, args ...any) {
	if len(r.wrong) < maxWrong {
		r.wrong = append(r.wrong, place+": "+fmt.Sprintf(format, args...))
	}
}

// unknown collects the unknown members of an object: warnings, or problems if the batch is
// strict.
func (r *reading) unknown(place string, of definition.Object) {
	r.warn(place, of.UnknownMembers())
}

// warn collects what is accepted, unless the batch is strict.
func (r *reading) warn(place string, all []definition.Problem) {
	for _, p := range all {
		switch {
		case r.strict:
			r.add(place+"."+p.Path, "%s", p.Message)
		case len(r.warnings) < maxWrong:
			r.warnings = append(r.warnings, place+"."+p.String())
		}
	}
}

// problem collects the problems of an object, and returns errors that the caller did not
// cause.
func (r *reading) problem(place string, err error) error {
	if listed, ok := errors.AsType[*definition.Problems](err); ok {
		for _, p := range *listed {
			r.add(place+"."+p.Path, "%s", p.Message)
		}
		return nil
	}
	if refused, ok := errors.AsType[*schemas.Refusal](err); ok {
		for _, one := range append([]string{refused.Message}, refused.Errors...) {
			r.add(place, "%s", one)
		}
		return nil
	}
	return err
}

func (r *reading) api(ctx context.Context, i int, raw []byte) error {
	api, unread := definition.ParseAPI(raw)
	if api != nil && api.IsSupergraph() && !r.composing {
		r.supergraphs = append(r.supergraphs, i)
		return nil
	}
	place := fmt.Sprintf("apis[%d]", i)
	if api != nil && api.ID != "" {
		place = fmt.Sprintf("apis[%q]", api.ID)
		r.members[api.ID] = r.apis[api.ID]
	}
	if api != nil && redact.HasMask(raw) {
		was, err := r.definitionOf(ctx, api.ID)
		if err != nil {
			return err
		}
		api, unread = definition.ParseAPI(r.restored(place, raw, was))
	}
	stored, err := r.stored(ctx, api)
	if err != nil {
		return err
	}
	r.unknown(place, api)
	from, err := r.applier.Schemas.Among(r.members).Complete(ctx, r.by.Org, api, unread, stored)
	if err != nil {
		return r.problem(place, err)
	}
	for _, p := range api.GatewayFiles() {
		r.add(place+"."+p.Path, "%s", p.Message)
	}
	r.warn(place, api.Warnings())
	switch {
	case from == schemas.Kept && r.batch.Expect < 0:
		r.add(place+"."+definition.SchemaPath, "is not there; say expect_revision, so that it is known which one stays, or give it")
	case api.ID == "":
		r.add(place, "api_id: is required here")
	case r.foreign(place, api.OrgID):
	case r.apis[api.ID] != nil:
		r.add(place, "is there twice")
	default:
		r.apis[api.ID], r.members[api.ID] = api, api
		if api.IsGraphQL() {
			r.graphs[api.ID] = stored
		}
		r.batch.APIs = append(r.batch.APIs, api)
	}
	return nil
}

// effects warns of what the APIs of the batch mean for clients of GraphQL APIs.
func (r *reading) effects(ctx context.Context) error {
	keeper := r.applier.Schemas.Among(r.members)
	var all []*schemas.ClientEffect
	warn := func(at string, texts []string) {
		for _, text := range texts {
			if len(r.warnings) < maxWrong {
				r.warnings = append(r.warnings, at+text)
			}
		}
	}
	for _, api := range r.batch.APIs {
		outdated, err := keeper.Outdated(ctx, r.by.Org, api)
		if err != nil {
			return err
		}
		warn(fmt.Sprintf("apis[%q].", api.ID), outdated)
		some, err := keeper.Effects(ctx, r.by.Org, api, r.graphs[api.ID])
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	keeper.CountReads(ctx, all)
	for _, e := range all {
		at := ""
		if r.apis[e.API] != nil {
			at = fmt.Sprintf("apis[%q].", e.API)
		}
		warn(at, e.Warnings())
	}
	return nil
}

// foreign reports whether an object names another organisation than the one that the
// batch is for, which is a problem.
func (r *reading) foreign(place, org string) bool {
	if org == "" || org == r.by.Org {
		return false
	}
	r.add(place+".org_id", "must be %s, the organisation that the call is about (see the query parameter org_id), or be left out", r.by.Org)
	return true
}

// stored returns an API as it is stored, or nil.
func (r *reading) stored(ctx context.Context, api *definition.API) (*definition.API, error) {
	if api == nil || api.ID == "" {
		return nil, nil
	}
	return r.storedAPI(ctx, api.ID)
}

func (r *reading) storedAPI(ctx context.Context, id string) (*definition.API, error) {
	body, err := r.definitionOf(ctx, id)
	if err == nil && body == nil {
		return nil, nil
	}
	api := new(definition.API)
	if err == nil {
		err = json.Unmarshal(body, api)
	}
	if err != nil {
		return nil, fmt.Errorf("reading API %s: %w", id, err)
	}
	return api, nil
}

// restored returns an object with the stored secrets in place of their masks.
func (r *reading) restored(place string, raw, stored []byte) []byte {
	complete, unrestorable := redact.Restore(raw, stored)
	for _, path := range unrestorable {
		r.add(place+"."+path, "%s", redact.Unrestorable)
	}
	return complete
}

func (r *reading) policy(ctx context.Context, i int, raw []byte) error {
	place := fmt.Sprintf("policies[%d]", i)
	p, err := definition.ParseNewPolicy(raw)
	if p != nil && p.Key() != "" {
		place = fmt.Sprintf("policies[%q]", p.Key())
	}
	if p != nil && redact.HasMask(raw) {
		was, missing := r.applier.Store.PolicyByID(ctx, r.by.Org, p.Key())
		if missing != nil && !errors.Is(missing, store.ErrNotFound) {
			return missing
		}
		p, err = definition.ParsePolicy(r.restored(place, raw, was.Body))
	}
	if err != nil {
		if other := r.problem(place, err); other != nil {
			r.add(place, "%v", other)
		}
		return nil
	}
	r.unknown(place, p)
	p.ID, p.StoreID = p.Key(), ""
	rights, problems := AccessRights(p.AccessRights, p.AccessList)
	for _, one := range problems {
		r.add(place, "%s", one)
	}
	p.AccessRights, p.AccessList = rights, nil
	switch {
	case p.ID == "":
		r.add(place, "id: is required here")
	case r.foreign(place, p.OrgID):
	case r.policies[p.ID] != nil:
		r.add(place, "is there twice")
	default:
		r.policies[p.ID] = p
		r.batch.Policies = append(r.batch.Policies, p)
	}
	return nil
}

// explained turns an error of the database into an answer that names the object.
func explained(err error) error {
	conflict := func(format string, args ...any) error {
		return &schemas.Refusal{Status: http.StatusConflict, Message: fmt.Sprintf(format, args...)}
	}
	if wrong, ok := errors.AsType[*store.NamesError](err); ok {
		return &schemas.Refusal{Status: http.StatusBadRequest, Message: "Validation failed", Errors: wrong.Texts()}
	}
	if unknown, ok := errors.AsType[*store.UnknownAPIsError](err); ok {
		refusal := &schemas.Refusal{Status: http.StatusBadRequest, Message: "Validation failed"}
		for _, id := range unknown.IDs {
			refusal.Errors = append(refusal.Errors, fmt.Sprintf("policies[%q].access_rights[%q]: names an API that does not exist", unknown.Policy, id))
		}
		return refusal
	}
	c, ok := errors.AsType[*store.ConflictError](err)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &schemas.Refusal{Status: http.StatusNotFound, Message: "What is to be deleted is not there: " + err.Error()}
	case !ok:
		return err
	case c.Kind == store.StaleRevision:
		return conflict("The configuration was changed in the meantime; it is at revision %d", c.Current)
	case c.Kind == store.InUse:
		return conflict("Policies name an API that is to be deleted; delete or change them as well: %s", strings.Join(c.With, ", "))
	case c.Kind == store.Composed:
		return conflict("Supergraphs are composed of an API that is to be deleted; delete them or take it out of their graphql.supergraph.subgraphs as well: %s", strings.Join(c.With, ", "))
	}
	return conflict("It cannot be stored: %v", err)
}

// AccessRights returns access rights by API: the map if it has entries, or else those
// of the array, with the problems of the array.
func AccessRights(rights map[string]*definition.Access, list []*definition.Access) (byAPI map[string]*definition.Access, problems []string) {
	if len(rights) > 0 || len(list) == 0 {
		return rights, nil
	}
	byAPI = make(map[string]*definition.Access, len(list))
	for i, access := range list {
		switch {
		case access == nil || access.APIID == "":
			problems = append(problems, fmt.Sprintf("access_rights_array[%d].api_id: must be the id of an API", i))
		case byAPI[access.APIID] != nil:
			problems = append(problems, fmt.Sprintf("access_rights_array[%d].api_id: %q stands twice", i, access.APIID))
		default:
			byAPI[access.APIID] = access
		}
	}
	return byAPI, problems
}
