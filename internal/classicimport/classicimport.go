// Package classicimport converts definitions, policies and keys of another gateway of the
// classic format, and reports the result for each.
package classicimport

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/declarative"
	"github.com/sluicegate/sluice/internal/definition"
)

// A Source is one object before conversion.
type Source struct {
	Kind declarative.Kind
	Name string // id of a definition or policy without its own; hash of a key
	File string // where it was found
	Body json.RawMessage
}

// An Entry is the result for one object.
type Entry struct {
	Kind    declarative.Kind `json:"kind"`
	Name    string           `json:"name"`
	From    string           `json:"from"`
	Mapped  []string         `json:"mapped,omitempty"`  // converted members
	Unknown []string         `json:"unknown,omitempty"` // members that are kept without an effect
	Refused []string         `json:"refused,omitempty"` // why it is refused

	Warnings []string `json:"warnings,omitempty"` // about Unknown, with the nearest known names

	object *declarative.Object
	lost   []Loss
	apis   []string // APIs that it refers to
	needs  []string // its policies
}

// A Report is the result for all objects.
type Report struct {
	Entries []*Entry `json:"objects"`
	Lost    []Loss   `json:"lost,omitempty"` // what has no effect here, the weightiest first
}

// Options say how objects are converted. The zero value changes nothing but what the
// format asks for.
type Options struct {
	Renames Renames
	Drops   *Drops // members to leave out; nil: none
	Strict  bool   // refuse objects with members that have no effect
}

// Convert converts all sources.
func Convert(sources []Source, o Options) *Report {
	report := new(Report)
	if o.Drops == nil {
		o.Drops = NewDrops(nil)
	}
	for _, s := range sources {
		report.Entries = append(report.Entries, convert(s, &o))
	}
	report.refuseCollisions()
	report.weigh()
	return report
}

func convert(s Source, o *Options) *Entry {
	e := &Entry{Kind: s.Kind, Name: s.Name, From: s.File}
	tree, err := decode(s.Body)
	if err != nil {
		e.refuse("", err.Error())
		return e
	}
	if n := o.Renames.apply(tree); n > 0 {
		e.note("names in %s were rewritten as --rename says", places(n))
	}
	if org, ok := tree["org_id"].(string); ok && org != "" {
		e.note("org_id %q is left out: it belongs to the organisation that imports", org)
	}
	delete(tree, "org_id")
	switch s.Kind {
	case declarative.API:
		e.api(tree)
	case declarative.Policy:
		e.policy(tree)
	default:
		e.key(tree)
	}
	e.check(tree, o)
	return e
}

// SetDepthBase sets what max_query_depth counts from, 0 or 1, in GraphQL APIs that do not
// say so themselves.
func (r *Report) SetDepthBase(base int) {
	for _, e := range r.Entries {
		if e.Kind != declarative.API || e.object == nil {
			continue
		}
		tree, err := decode(e.object.Body)
		g, _ := tree["graphql"].(map[string]any)
		if err != nil || g["enabled"] != true || g["depth_base"] != nil {
			continue
		}
		g["depth_base"] = base
		body, err := encode(tree)
		if err != nil {
			continue // it was just decoded
		}
		e.object.Body = body
		e.note("graphql.depth_base is set to %d: %s", base, depthCounts[base])
	}
}

// depthCounts says what a depth base means.
var depthCounts = [...]string{
	"classic policies count depth from 0, so that { a { b } } has depth 2; --depth-base 1 counts the operation too",
	"{ a { b } } has depth 3, although classic policies count it as 2",
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

// api names a definition without a name after its file.
func (e *Entry) api(tree map[string]any) {
	delete(tree, "_id")
	defer e.classic(tree)
	if id, ok := tree["id"].(string); ok { // the id in another database
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
		return // its policies decide its access rights
	}
	e.writeOut(tree)
}

// has reports whether a member is set.
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

// check decodes the object as the admin does, without the members that are to be left out,
// and records its references.
func (e *Entry) check(tree map[string]any, o *Options) {
	body, typed, err := e.decode(tree)
	problems, listed := errors.AsType[*definition.Problems](err)
	for listed && e.drop(tree, *problems, o.Drops) {
		body, typed, err = e.decode(tree)
		problems, listed = errors.AsType[*definition.Problems](err)
	}
	if typed == nil {
		e.refuse("", err.Error())
		return
	}
	e.warn(typed, o.Strict)
	if listed {
		for _, p := range *problems {
			e.refuse(p.Path, p.Message)
		}
	} else if err != nil {
		e.refuse("", err.Error())
	}
	if len(e.Refused) > 0 {
		return
	}
	e.object = &declarative.Object{Kind: e.Kind, Name: e.Name, Body: body, Where: e.From}
	if e.Kind == declarative.Key {
		e.asKey(typed.(*definition.Session))
	}
}

// warn reports the members that have no effect.
func (e *Entry) warn(typed definition.Object, strict bool) {
	for _, p := range typed.UnknownMembers() {
		e.Unknown = append(e.Unknown, p.Path)
		e.Warnings = append(e.Warnings, p.String())
		e.lose(minorLoss, p.Path, p.Message)
		if strict {
			e.refuse(p.Path, p.Message)
		}
	}
}

// decode decodes the object. typed is nil if it is no JSON.
func (e *Entry) decode(tree map[string]any) (body []byte, typed definition.Object, err error) {
	if body, err = encode(tree); err != nil {
		return nil, nil, err
	}
	switch e.Kind {
	case declarative.API:
		typed, err = definition.ParseAPI(body)
	case declarative.Policy:
		p, wrong := definition.ParseNewPolicy(body)
		typed, err, e.apis = p, wrong, named(p.AccessRights)
	default:
		s, wrong := definition.ParseNewSession(body)
		typed, err, e.apis, e.needs = s, wrong, named(s.AccessRights), s.Policies()
	}
	return body, typed, err
}

// asKey sets the hash of a key. Keys are imported by hash only, because the key itself is
// the user's secret.
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
		e.note("its hash is a %s, which can be inverted: it opens something only where keys.legacy_hashes lists %s, and then any token with the same hash does; replace the key (sluice key rotate) and empty that list as soon as you can", kind, kind)
	}
}

// masked returns a key in clear in a form that may be shown.
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
