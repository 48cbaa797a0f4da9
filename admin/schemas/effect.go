package schemas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/graphql/change"
	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/usage"
)

// Bounds of finding out what a change means for clients.
const (
	composedAtOnce = 20 // supergraphs
	askedAtOnce    = 5  // APIs whose use the gateways are asked for
	warnedOf       = 10 // changes, rules and problems, each
)

// A Comparison is what a new schema of an API changes and breaks.
type Comparison struct {
	// Changes of the schema, breaking ones first; at most 1,000.
	Changes []change.Change `json:"changes"`
	// Number of all changes.
	Total int `json:"changes_total"`
	// Number of the breaking changes.
	Breaking int `json:"breaking"`
	// Field rules, persisted queries and trusted documents that the new schema breaks; at most 1,000.
	Broken []change.Break `json:"broken"`
	// Number of all that it breaks.
	BrokenTotal int `json:"broken_total"`
	// How the fields were read that breaking changes are about; left out if no change breaks clients.
	Used *Use `json:"used,omitempty"`

	api        string   // its id
	unservable []string // those of Broken for which gateways refuse the API
}

// Use is how fields were read, since gateways were started.
type Use struct {
	usage.CountedBy
	// Fields that were read, by type and name.
	Fields []usage.FieldUse `json:"fields" nullable:"false"`
	// Whether more fields of the API were read than gateways report at once; GET
	// /api/apis/{id}/usage/fields lists them by type.
	More bool `json:"more"`
	// Reason for which the gateways were not asked; left out: they were.
	Unknown string `json:"unknown,omitempty"`
}

// A ClientEffect is what a change of an API means for the clients of a GraphQL API: of itself,
// or of a supergraph that names it, once that is composed anew.
type ClientEffect struct {
	// Id of the GraphQL API whose clients are meant.
	API string `json:"api_id"`
	// Name of that API.
	Name string `json:"name"`
	// Whether it names the changed API as well, and was not composed: only the first 20 supergraphs
	// are.
	Unchecked bool `json:"unchecked,omitempty"`
	// Problems because of which the supergraph cannot be composed with the new schema.
	Problems []ComposeProblem `json:"problems" nullable:"false"`
	Comparison

	place string // what warnings begin with
}

// compare fills in what a schema changes and breaks. Faults of the former schema that
// gateways ignore are ignored; one that they cannot serve counts as none.
func (c *Comparison) compare(was string, now *schema.Schema, api *definition.API, holders func() ([]change.Holder, error)) error {
	c.api, c.Changes, c.Broken = api.ID, []change.Change{}, []change.Break{}
	before, _, err := schema.LoadServed(was)
	if err != nil {
		before = nil
	} else if all := change.Compare(before, now); len(all) > 0 {
		c.Total, c.Breaking = len(all), change.CountBreaking(all)
		c.Changes = all[:min(len(all), listed)]
	}
	if before != nil && c.Total == 0 {
		return nil // what was right stays right
	}
	held, err := holders()
	if err != nil {
		return err
	}
	all := change.Broken(before, now, api, held)
	for _, b := range all {
		// Gateways check persisted queries when they load an API, and keep the former API
		// if one is invalid. Trusted documents are checked when they run.
		if b.Kind == change.PersistedQuery {
			c.unservable = append(c.unservable, b.Path+": "+b.Message)
		}
	}
	c.BrokenTotal, c.Broken = len(all), append(c.Broken, all[:min(len(all), listed)]...)
	return nil
}

// Effects returns what saving api in place of stored, nil for a new API, means for
// clients: of the API, if its schema differs, and of the supergraphs that name it.
// Supergraphs of the batch are left out; they have effects of their own.
func (k *Keeper) Effects(ctx context.Context, org string, api, stored *definition.API) ([]*ClientEffect, error) {
	all := []*ClientEffect{}
	if !hasSchema(stored) || !api.IsGraphQL() {
		return all, nil
	}
	if api.GraphQL.Schema != stored.GraphQL.Schema {
		now, err := load(api.GraphQL.Schema, badRequest, InvalidSchema)
		if err != nil {
			return nil, err
		}
		own := &ClientEffect{API: stored.ID, Name: api.Name, Problems: []ComposeProblem{}, place: definition.SchemaPath}
		if err := own.compare(stored.GraphQL.Schema, now, api, k.holding(ctx, org, stored.ID)); err != nil {
			return nil, err
		}
		all = append(all, own)
	}
	sdl := api.FederatedSchema()
	if sdl == "" || sdl == stored.FederatedSchema() {
		return all, nil
	}
	more, err := k.supergraphs(ctx, org, stored.ID, sdl)
	return append(all, more...), err
}

// Check returns what another schema of an API would mean for clients. For a supergraph
// text is empty: it is composed anew of the schemas of its APIs.
func (k *Keeper) Check(ctx context.Context, org, id, text string) ([]*ClientEffect, error) {
	row, stored, err := k.graphQLAPI(ctx, org, id)
	if err != nil {
		return nil, err
	}
	api, err := read(&row)
	if err != nil {
		return nil, err
	}
	switch empty := strings.TrimSpace(text) == ""; {
	case api.IsSupergraph() && !empty:
		return nil, &definition.Problems{{Path: "schema", Message: "must be left out: the schema of a supergraph is composed of those of its subgraphs; check theirs"}}
	case api.IsSupergraph():
		err = k.takeAnew(ctx, org, api)
	case empty:
		return nil, &definition.Problems{{Path: "schema", Message: "is required: the schema that the API might get, in SDL"}}
	case api.IsSubgraph() && api.GraphQL.SubgraphSDL() != "":
		api.GraphQL.Subgraph.SDL = text
	default:
		api.GraphQL.Schema = text
	}
	if err != nil {
		return nil, err
	}
	if _, err := k.Complete(ctx, org, api, nil, stored); err != nil {
		return nil, err
	}
	return k.EffectsOnClients(ctx, org, api, stored)
}

// EffectsOnClients returns the same as Effects, with the reads of fields.
func (k *Keeper) EffectsOnClients(ctx context.Context, org string, api, stored *definition.API) ([]*ClientEffect, error) {
	effects, err := k.Effects(ctx, org, api, stored)
	if err == nil {
		k.CountReads(ctx, effects)
	}
	return effects, err
}

// Outdated returns warnings about the members of a supergraph that have another schema than
// the API that they name.
func (k *Keeper) Outdated(ctx context.Context, org string, super *definition.API) (warnings []string, err error) {
	for i, m := range super.Members() {
		if m.APIID == "" || strings.TrimSpace(m.SDL) == "" {
			continue
		}
		api, err := k.member(ctx, org, m.APIID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if sdl := api.FederatedSchema(); sdl != "" && sdl != strings.TrimSpace(m.SDL) {
			warnings = append(warnings, fmt.Sprintf("%s: differs from the schema that API %q has now; leave it out to take that over", object.Member(object.Item(membersPath, i), "sdl"), m.APIID))
		}
	}
	return warnings, nil
}

// takeAnew has a supergraph take over the schemas that its APIs have now. It keeps those
// of APIs that are gone.
func (k *Keeper) takeAnew(ctx context.Context, org string, super *definition.API) error {
	members := super.GraphQL.Supergraph.Subgraphs
	for i := range members {
		if members[i].APIID == "" {
			continue
		}
		api, err := k.member(ctx, org, members[i].APIID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if sdl := api.FederatedSchema(); sdl != "" {
			members[i].SDL = sdl
		}
	}
	return nil
}

// supergraphs returns what a new schema of an API means for the supergraphs that name it.
func (k *Keeper) supergraphs(ctx context.Context, org, id, sdl string) ([]*ClientEffect, error) {
	all := []*ClientEffect{}
	rows, err := k.store.SupergraphsOf(ctx, org, id)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if _, ok := k.batch[rows[i].ID]; ok {
			continue
		}
		e := &ClientEffect{API: rows[i].ID, Name: rows[i].Name, Problems: []ComposeProblem{}, place: fmt.Sprintf("supergraph %q", rows[i].ID)}
		all = append(all, e)
		if e.Unchecked = len(all) > composedAtOnce; e.Unchecked {
			e.Changes, e.Broken = []change.Change{}, []change.Break{}
			continue
		}
		if err := k.recompose(ctx, org, e, id, sdl); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// recompose fills in what a schema of the API id means for a supergraph.
func (k *Keeper) recompose(ctx context.Context, org string, e *ClientEffect, id, sdl string) error {
	row, err := k.store.APIByID(ctx, org, e.API)
	if err != nil {
		return err
	}
	super, err := read(&row)
	if err != nil {
		return err
	}
	e.Changes, e.Broken = []change.Change{}, []change.Break{}
	members := super.GraphQL.Supergraph.Subgraphs
	for i := range members {
		if members[i].APIID == id {
			members[i].SDL = sdl
		}
	}
	made, err := k.Compose(ctx, org, membersPath, members)
	if err != nil {
		return err
	}
	if e.Problems = made.Problems; !made.Valid {
		return nil
	}
	now, err := load(made.MergedSDL, badRequest, InvalidSchema)
	if err != nil {
		return err
	}
	return e.compare(super.GraphQL.Schema, now, super, k.holding(ctx, org, super.ID))
}

func (k *Keeper) holding(ctx context.Context, org, api string) func() ([]change.Holder, error) {
	return func() ([]change.Holder, error) { return k.holders(ctx, org, api) }
}

// CountReads has the gateways say how the fields were read that breaking changes are
// about.
func (k *Keeper) CountReads(ctx context.Context, effects []*ClientEffect, more ...*Comparison) {
	all := more
	for _, e := range effects {
		all = append(all, &e.Comparison)
	}
	all = slices.DeleteFunc(all, func(c *Comparison) bool { return c.Breaking == 0 })
	var asking sync.WaitGroup
	for i, c := range all {
		if i >= askedAtOnce || k.options.Used == nil {
			c.Used = unknown("more APIs lose fields than are asked for at once; check them one by one")
			continue
		}
		asking.Go(func() {
			use, err := k.options.Used(ctx, c.api)
			if err != nil {
				k.log.Warn("the gateways could not be asked which fields are read", "api", c.api, "err", err)
				use = unknown(err.Error())
			}
			use.Fields = slices.DeleteFunc(use.Fields, func(f usage.FieldUse) bool { return !c.loses(&f) })
			c.Used = use
		})
	}
	asking.Wait()
}

func unknown(why string) *Use {
	return &Use{CountedBy: usage.CountedBy{Gateways: []string{}, Silent: []string{}}, Fields: []usage.FieldUse{}, Unknown: why}
}

// loses reports whether a breaking change is about a field.
func (c *Comparison) loses(f *usage.FieldUse) bool {
	return slices.ContainsFunc(c.Changes, func(one change.Change) bool { return one.Level == change.Breaking && isAbout(one.Place, f) })
}

// isAbout reports whether a place of a schema is a field, an argument of it, or its type.
func isAbout(place string, f *usage.FieldUse) bool {
	place, _, _ = strings.Cut(place, "(")
	owner, name, isField := strings.Cut(place, ".")
	return owner == f.Type && (!isField || name == f.Name)
}

// Warnings returns what effects mean.
func Warnings(effects []*ClientEffect) []string {
	all := []string{}
	for _, e := range effects {
		all = append(all, e.Warnings()...)
	}
	return all
}

// Warnings returns what an effect means, with the place where it is.
func (e *ClientEffect) Warnings() (all []string) {
	add := func(format string, args ...any) { all = append(all, e.place+": "+fmt.Sprintf(format, args...)) }
	if e.Unchecked {
		add("names the API, too, and was not composed with the new schema; check it by itself")
	}
	for i := range e.Problems[:min(len(e.Problems), warnedOf)] {
		p := &e.Problems[i]
		add("cannot be composed with the new schema: %s: %s", p.Code, (*compose.Problem)(p).String())
	}
	for _, one := range e.Changes[:min(e.Breaking, len(e.Changes), warnedOf)] {
		add("breaks clients: %s; %s", strings.TrimSuffix(one.Message, "."), e.Used.of(one.Place))
	}
	if e.Breaking > warnedOf {
		add("%d more changes break clients; POST /api/apis/%s/schema/check lists them", e.Breaking-warnedOf, e.API)
	}
	for _, b := range e.Broken[:min(len(e.Broken), warnedOf)] {
		add("breaks %s: %s", strings.TrimSpace(holderOf(&b)+" "+b.Path), b.Message)
	}
	return all
}

func holderOf(b *change.Break) string {
	switch {
	case b.Policy != "":
		return fmt.Sprintf("policy %q", b.Policy)
	case b.Key != "":
		return fmt.Sprintf("key %.12s", b.Key)
	}
	return ""
}

// of says how what is at a place of the schema was read.
func (u *Use) of(place string) string {
	switch {
	case u == nil:
		return "it was not asked how it is read"
	case u.Unknown != "":
		return "how it is read is not known: " + u.Unknown
	case u.Since == nil && len(u.Silent) == 0:
		return "no gateway has counted how it is read"
	}
	var sum usage.FieldUse
	for i := range u.Fields {
		if f := &u.Fields[i]; isAbout(place, f) {
			sum.Add(f)
		}
	}
	text := "not read"
	if sum.Count > 0 {
		names := make([]string, 0, len(sum.Keys))
		for _, key := range sum.Keys {
			if key.Key != "" {
				names = append(names, key.Key)
			}
		}
		text = fmt.Sprintf("read %d times, last at %s", sum.Count, sum.LastUsed.UTC().Format(time.RFC3339))
		switch by := strings.Join(names, ", "); {
		case len(names) == 0:
		case len(names) == sum.KeysTotal:
			text += ", by " + by
		default:
			text += fmt.Sprintf(", by %d keys, most by %s", sum.KeysTotal, by)
		}
	}
	if u.Since != nil {
		text += " (counted since " + u.Since.UTC().Format(time.RFC3339) + ")"
	}
	if len(u.Silent) > 0 {
		text += "; without the counts of " + strings.Join(u.Silent, ", ") + ", which did not answer"
	}
	return text
}
