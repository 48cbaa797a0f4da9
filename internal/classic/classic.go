// Package classic takes over definitions, policies and keys that were written
// for another gateway of the classic format, and reports what becomes of each.
package classic

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/desired"
	"github.com/sluicegate/sluice/internal/unknown"
)

// A Source is one object as it was found.
type Source struct {
	Kind desired.Kind
	Name string // id of a definition or policy where it has none itself; hash of a key
	File string // where it was found
	Body json.RawMessage
}

// An Entry is what became of one object.
type Entry struct {
	Kind    desired.Kind `json:"kind"`
	Name    string       `json:"name"`
	From    string       `json:"from"`
	Mapped  []string     `json:"mapped,omitempty"`  // what was written in another way
	Unknown []string     `json:"unknown,omitempty"` // members that are kept and have no effect
	Refused []string     `json:"refused,omitempty"` // why it is not taken over

	object *desired.Object
	apis   []string // that it names
	needs  []string // policies that it carries
}

// A Report is what became of everything that was found.
type Report struct {
	Entries []*Entry `json:"objects"`
}

// Convert takes over what was found.
func Convert(sources []Source, r Renames) *Report {
	report := new(Report)
	for _, s := range sources {
		report.Entries = append(report.Entries, convert(s, r))
	}
	report.settle()
	return report
}

func convert(s Source, r Renames) *Entry {
	e := &Entry{Kind: s.Kind, Name: s.Name, From: s.File}
	tree, err := decode(s.Body)
	if err != nil {
		e.refuse("", err.Error())
		return e
	}
	if n := r.apply(tree); n > 0 {
		e.note("names in %s were rewritten as --rename says", places(n))
	}
	if org, ok := tree["org_id"].(string); ok && org != "" {
		e.note("org_id %q is left out: it belongs to the organisation that imports", org)
	}
	delete(tree, "org_id")
	switch s.Kind {
	case desired.API:
		e.api(tree)
	case desired.Policy:
		e.policy(tree)
	default:
		e.key(tree)
	}
	e.check(tree)
	return e
}

func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}

func (e *Entry) note(format string, args ...any) {
	e.Mapped = append(e.Mapped, fmt.Sprintf(format, args...))
}

func (e *Entry) refuse(path, message string) {
	if path != "" {
		message = path + ": " + message
	}
	e.Refused = append(e.Refused, message)
}

// api names a definition as its file is named where it has no name itself.
func (e *Entry) api(tree map[string]any) {
	delete(tree, "_id")
	if id, ok := tree["id"].(string); ok { // the key of another database
		e.note("id %q is left out: APIs are known by api_id alone", id)
		delete(tree, "id")
	}
	if id, ok := tree["api_id"].(string); ok && id != "" {
		e.Name = id
		return
	}
	tree["api_id"] = e.Name
	e.note("api_id is %q, as the file is named", e.Name)
}

func (e *Entry) policy(tree map[string]any) {
	id, _ := tree["id"].(string)
	stored, _ := tree["_id"].(string)
	switch {
	case id != "":
		e.Name = id
	case stored != "":
		e.Name = stored
	default:
		e.note("id is %q, as it is found under", e.Name)
	}
	tree["id"] = e.Name
	delete(tree, "_id")
	listed(tree)
	partitions, _ := tree["partitions"].(map[string]any)
	perAPI, _ := partitions["per_api"].(bool)
	if perAPI {
		e.writeOut(tree)
		return
	}
	e.leaveOut(tree, "access_rights[%q].limit: is left out: without partitions.per_api it had no effect")
}

func (e *Entry) key(tree map[string]any) {
	for _, name := range []string{"quota_renews", "quota_remaining"} {
		if has(tree, name) {
			e.note("%s is left out: what was used of quotas is counted anew", name)
		}
		delete(tree, name)
	}
	delete(tree, "last_updated")
	listed(tree)
	if policies, _ := tree["apply_policies"].([]any); len(policies) > 0 || has(tree, "apply_policy_id") {
		return // policies say what it may
	}
	e.writeOut(tree)
}

// has tells whether a member says something.
func has(tree map[string]any, name string) bool {
	switch v := tree[name].(type) {
	case nil:
		return false
	case string:
		return v != ""
	case json.Number:
		return number(v) != 0
	}
	return true
}

// check reads the object as the admin will, and notes what it names.
func (e *Entry) check(tree map[string]any) {
	body, err := encode(tree)
	if err != nil {
		e.refuse("", err.Error())
		return
	}
	var typed any
	switch e.Kind {
	case desired.API:
		typed, err = definition.ParseAPI(body)
	case desired.Policy:
		p, wrong := definition.ParsePolicy(body)
		typed, err, e.apis = p, wrong, named(p.AccessRights)
	default:
		s, wrong := definition.ParseSession(body)
		typed, err, e.apis, e.needs = s, wrong, named(s.AccessRights), s.Policies()
	}
	for _, m := range unknown.Members(typed, body, "") {
		e.Unknown = append(e.Unknown, m.Path)
	}
	if problems, ok := errors.AsType[*definition.Problems](err); ok {
		for _, p := range *problems {
			e.refuse(p.Path, p.Message)
		}
		return
	}
	if err != nil {
		e.refuse("", err.Error())
		return
	}
	e.object = &desired.Object{Kind: e.Kind, Name: e.Name, Body: body, Where: e.From}
	if e.Kind == desired.Key {
		e.asKey(typed.(*definition.Session))
	}
}

// asKey gives a key its hash. Only hashes are taken over: what a key is belongs to
// whoever uses it.
func (e *Entry) asKey(s *definition.Session) {
	if !isHash(e.Name) {
		e.Name = masked(e.Name)
		e.refuse("", "is a key in clear; make it anew with key create, or have that gateway hash its keys first")
		e.object = nil
		return
	}
	e.object.Hash = e.Name
	if s.Alias != "" {
		e.object.Name = s.Alias
	}
	if len(e.Name) != 64 {
		kind := map[int]string{8: "murmur32", 16: "murmur64", 32: "murmur128"}[len(e.Name)]
		e.note("its hash is a %s: keys.legacy_hashes must name that unless the key names it itself", kind)
	}
}

// masked is a key in clear as it may be shown.
func masked(key string) string {
	if len(key) <= 8 {
		return "..."
	}
	return "..." + key[len(key)-4:]
}

func isHash(text string) bool {
	if !slices.Contains([]int{8, 16, 32, 64}, len(text)) {
		return false
	}
	return strings.Trim(text, "0123456789abcdef") == ""
}

func named(rights map[string]*definition.Access) []string {
	var ids []string
	for id := range rights {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
