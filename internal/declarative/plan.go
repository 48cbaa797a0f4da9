package declarative

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/diff"
)

// Actions of a plan.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
)

// A Change is the planned action on one object.
type Change struct {
	Action  string        `json:"action"` // Create, Update or Delete
	Kind    Kind          `json:"kind"`
	Name    string        `json:"name"`
	Members []diff.Member `json:"changes,omitempty"` // of an update

	object *Object // the wanted object
	hash   string  // of an existing key
}

// A Plan lists the changes that give a server the wanted objects.
type Plan struct {
	Changes   []Change
	Unchanged int

	want *Set
}

// Options say what happens to objects that are in no file.
type Options struct {
	Prune  bool              // delete APIs and policies that are in no file; never keys
	Select map[string]string // of these only objects with all of the labels
}

// NewPlan compares the objects of a server with the wanted ones.
func NewPlan(have, want *Set, o Options) (*Plan, error) {
	there := make(map[string]*Object, len(have.Objects))
	named := make(map[string]*Object)
	for _, one := range have.Objects {
		there[one.identity()] = one
		if one.Kind == Key {
			named[one.Name] = one
		}
	}
	plan := &Plan{want: want}
	kept := make(map[string]bool, len(want.Objects))
	for _, one := range want.Objects {
		kept[one.identity()] = true
		old := there[one.identity()]
		if one.Generate {
			old = named[one.Name]
		}
		if err := plan.compare(old, one); err != nil {
			return nil, fmt.Errorf("comparing %s: %w", one.place(), err)
		}
	}
	if !o.Prune {
		return plan, nil
	}
	for _, one := range have.Objects {
		if one.Kind != Key && !kept[one.identity()] && o.covers(one) {
			plan.Changes = append(plan.Changes, Change{Action: Delete, Kind: one.Kind, Name: one.Name})
		}
	}
	return plan, nil
}

func (o *Options) covers(one *Object) bool {
	for name, value := range o.Select {
		if one.Labels[name] != value {
			return false
		}
	}
	return true
}

func (p *Plan) compare(old, one *Object) error {
	if old == nil {
		p.Changes = append(p.Changes, Change{Action: Create, Kind: one.Kind, Name: one.Name, object: one})
		return nil
	}
	before, err := old.canonical()
	if err != nil {
		return err
	}
	after, err := one.canonical()
	if err != nil {
		return err
	}
	p.takeSchemas(after)
	keepSchema(before, after)
	members, err := difference(before, after)
	if err != nil {
		return err
	}
	for i := range members {
		m := &members[i]
		refs := []references{refsOf(old.Body), refsOf(one.Body)}
		m.Before, m.After = masked(m.Path, m.Before, refs...), masked(m.Path, m.After, refs...)
	}
	if len(members) == 0 {
		p.Unchanged++
		return nil
	}
	p.Changes = append(p.Changes, Change{Action: Update, Kind: one.Kind, Name: one.Name, Members: members, object: one, hash: old.Hash})
	return nil
}

// keepSchema uses the server's schemas if a file has none, because the admin keeps,
// fetches or composes them.
func keepSchema(before, after any) {
	have, want := object(before)["graphql"], object(after)["graphql"]
	if have == nil || want == nil || object(want)["schema"] != nil {
		return
	}
	keep(have, want, "schema", "last_schema_update")
	if mode := object(want)["execution_mode"]; mode == definition.ModeSubgraph && mode == object(have)["execution_mode"] {
		keep(have, want, "subgraph")
		keep(object(have)["subgraph"], object(want)["subgraph"], "sdl")
	}
	have, want = object(have)["supergraph"], object(want)["supergraph"]
	keep(have, want, "merged_sdl", "updated_at")
	members, _ := object(want)["subgraphs"].([]any)
	for i, were := range elements(object(have)["subgraphs"], len(members)) {
		if api := object(members[i])["api_id"]; api != nil && api == object(were)["api_id"] {
			keep(were, members[i], "sdl")
		}
	}
}

// takeSchemas gives the members of a supergraph the schemas of the wanted APIs that they
// name, as the admin does, so that a supergraph differs if one of its subgraphs does.
func (p *Plan) takeSchemas(after any) {
	members, _ := object(object(object(after)["graphql"])["supergraph"])["subgraphs"].([]any)
	for i := range members {
		m := object(members[i])
		if m == nil || m["api_id"] == nil || m["sdl"] != nil {
			continue
		}
		at := slices.IndexFunc(p.want.Objects, func(o *Object) bool { return o.Kind == API && o.Name == m["api_id"] })
		if at < 0 {
			continue
		}
		api, _ := definition.ParseAPI(p.want.Objects[at].Body) // its problems are the admin's to report
		if api != nil && api.FederatedSchema() != "" {
			m["sdl"] = api.FederatedSchema()
		}
	}
}

// keep copies members that want lacks.
func keep(have, want any, names ...string) {
	into := object(want)
	for _, name := range names {
		if value, ok := object(have)[name]; ok && into != nil && into[name] == nil {
			into[name] = value
		}
	}
}

func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

// elements returns at most the first most elements of a list.
func elements(v any, most int) []any {
	list, _ := v.([]any)
	return list[:min(len(list), most)]
}

func difference(before, after any) ([]diff.Member, error) {
	b, err := encode(before)
	if err != nil {
		return nil, err
	}
	a, err := encode(after)
	if err != nil {
		return nil, err
	}
	return diff.JSON(b, a)
}

// Count returns how many changes have an action.
func (p *Plan) Count(action string) (n int) {
	for _, c := range p.Changes {
		if c.Action == action {
			n++
		}
	}
	return n
}

// Text formats a plan: one line for each object, and one below for each member that
// differs.
func (p *Plan) Text() string {
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s %s %s\n", c.Action, c.Kind, c.Name)
		for _, m := range c.Members {
			fmt.Fprintf(&b, "  %s: %s -> %s\n", m.Path, short(m.Before), short(m.After))
		}
	}
	return b.String()
}

// short formats a value on one line.
func short(value any) string {
	if value == nil {
		return "nothing"
	}
	text, err := encode(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	const most = 120
	if runes := []rune(string(text)); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return string(text)
}

// A Batch is a plan in the form of the admin's REST API.
type Batch struct {
	Expect   *int64            `json:"expect_revision,omitempty"`
	DryRun   bool              `json:"dry_run,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Strict   bool              `json:"strict,omitempty"`
	APIs     []json.RawMessage `json:"apis,omitempty"`
	Policies []json.RawMessage `json:"policies,omitempty"`
	Keys     []Adopted         `json:"keys,omitempty"`
	Delete   struct {
		APIs     []string `json:"apis,omitempty"`
		Policies []string `json:"policies,omitempty"`
	} `json:"delete"`
}

// Adopted is a key by its hash, or one to be created.
type Adopted struct {
	Hash     string          `json:"key_hash,omitempty"`
	Generate bool            `json:"generate,omitempty"`
	Session  json.RawMessage `json:"session"`
}

// Batch returns the changes, which happen in one transaction.
func (p *Plan) Batch() *Batch {
	b := new(Batch)
	for _, c := range p.Changes {
		switch {
		case c.Action == Delete && c.Kind == API:
			b.Delete.APIs = append(b.Delete.APIs, c.Name)
		case c.Action == Delete:
			b.Delete.Policies = append(b.Delete.Policies, c.Name)
		case c.Kind == API:
			b.APIs = append(b.APIs, c.object.Body)
		case c.Kind == Policy:
			b.Policies = append(b.Policies, c.object.Body)
		case c.object.Generate && c.Action == Create:
			b.Keys = append(b.Keys, Adopted{Generate: true, Session: c.object.Body})
		default:
			hash := c.object.Hash
			if hash == "" {
				hash = c.hash
			}
			b.Keys = append(b.Keys, Adopted{Hash: hash, Session: c.object.Body})
		}
	}
	return b
}

// errNoObjects is returned if there is nothing to apply.
var errNoObjects = errors.New("the files describe no object at all")

// Check refuses an empty set with pruning, which would delete everything.
func (s *Set) Check() error {
	if len(s.Objects) == 0 {
		return errNoObjects
	}
	return nil
}
