package declarative

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
)

// set builds the body of an object from its specification, and returns the problems.
func (o *Object) set(members map[string]json.RawMessage, refs references) []string {
	id := map[Kind]string{API: "api_id", Policy: "id", Key: "alias"}[o.Kind]
	if given, ok := members[id]; ok && o.Kind != Key {
		var text string
		if json.Unmarshal(given, &text) != nil || text != o.Name {
			return []string{fmt.Sprintf("spec.%s: must be %q as metadata.name is, or be left out", id, o.Name)}
		}
	}
	if _, ok := members[id]; !ok && o.Name != o.Hash { // a key without a name is named by its hash
		members[id], _ = json.Marshal(o.Name) // a text
	}
	if len(o.Labels) > 0 {
		members[labelsMember], _ = json.Marshal(o.Labels) // texts
	}
	delete(members, refsMember)
	if len(refs) > 0 && o.Kind != Key { // secrets of keys are never written
		members[refsMember], _ = json.Marshal(refs) // texts
	}
	body, err := encode(members)
	if err != nil {
		return []string{"spec: " + err.Error()}
	}
	o.Body = body
	_, err = o.canonical()
	return problemsOf("spec", err)
}

// problemsOf lists the problems of an error, with paths below a path.
func problemsOf(below string, err error) []string {
	if err == nil {
		return nil
	}
	listed, ok := errors.AsType[*definition.Problems](err)
	if !ok {
		return []string{below + ": " + err.Error()}
	}
	var all []string
	for _, p := range *listed {
		at := below
		if p.Path != "" {
			at += "." + p.Path
		}
		all = append(all, at+": "+p.Message)
	}
	return all
}

// canonical returns an object in a form in which equivalent objects are equal: without
// defaults, with sets sorted.
func (o *Object) canonical() (any, error) {
	typed, err := o.typed()
	if err != nil {
		return nil, err
	}
	text, err := encode(typed)
	if err != nil {
		return nil, err
	}
	return canonicalText(text)
}

func canonicalText(text []byte) (any, error) {
	var tree map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	if tree["active"] == true {
		delete(tree, "active")
	}
	return plain(tree), nil
}

// onlySchemaLacks reports whether the only problem is a missing schema, which the admin
// fetches.
func onlySchemaLacks(api *definition.API, err error) bool {
	problems, ok := errors.AsType[*definition.Problems](err)
	return ok && len(*problems) == 1 && (*problems)[0].Path == definition.SchemaPath && api.GraphQL != nil && api.GraphQL.Schema == ""
}

// typed decodes the body, normalised as a server would. An object of a server may be one
// that is no longer accepted: it can still be replaced.
func (o *Object) typed() (any, error) {
	switch o.Kind {
	case API:
		api, err := definition.ParseAPI(o.Body)
		if err != nil && !onlySchemaLacks(api, err) && !o.stored(api) {
			return nil, err
		}
		api.OrgID = ""
		return api, nil
	case Policy:
		p, err := definition.ParsePolicy(o.Body)
		if err != nil && !o.stored(p) {
			return nil, err
		}
		return normalPolicy(p), nil
	}
	s, err := definition.ParseSession(o.Body)
	if err != nil && !o.stored(s) {
		return nil, err
	}
	return normalSession(s), nil
}

// stored decodes an object of a server without checking it. It reports false for objects
// of files.
func (o *Object) stored(into any) bool { return o.Where == "" && json.Unmarshal(o.Body, into) == nil }

// Unknown returns the members of the specification that are kept and have no effect.
func (o *Object) Unknown() definition.Problems {
	var of definition.Object
	switch o.Kind {
	case API:
		of = new(definition.API)
	case Policy:
		of = new(definition.Policy)
	default:
		of = new(definition.Session)
	}
	if json.Unmarshal(o.Body, of) != nil {
		return nil // its problems are reported elsewhere
	}
	return of.UnknownMembers()
}

// Unknown returns a warning for each member of the objects that is kept and has no effect.
func (s *Set) Unknown() (warnings []string) {
	for _, o := range s.Objects {
		for _, p := range o.Unknown() {
			warnings = append(warnings, o.Where+": spec."+p.String())
		}
	}
	return warnings
}

func normalPolicy(p *definition.Policy) *definition.Policy {
	p.ID, p.StoreID, p.OrgID = p.Key(), "", ""
	if p.AccessRights == nil && len(p.AccessList) > 0 {
		p.AccessRights = make(map[string]*definition.Access, len(p.AccessList))
	}
	for _, a := range p.AccessList {
		if p.AccessRights[a.APIID] == nil {
			p.AccessRights[a.APIID] = a
		}
	}
	p.AccessList = nil
	nameAccess(p.AccessRights)
	return p
}

// normalSession removes the members of a session that gateways and admins maintain.
func normalSession(s *definition.Session) *definition.Session {
	s.OrgID, s.DateCreated, s.LastUpdated = "", "", ""
	s.QuotaRenews, s.QuotaRemaining = 0, 0
	s.SetCredentials(nil)
	s.SetQuotas(nil)
	s.BasicAuth = nil // servers do not return passwords and secrets, so they cannot be compared
	if s.Extra != nil {
		s.Extra.JWT = nil
	}
	for _, a := range s.AccessRights {
		if a.Limit != nil {
			a.Limit.QuotaRenews, a.Limit.QuotaRemaining = 0, 0
		}
	}
	nameAccess(s.AccessRights)
	return s
}

func nameAccess(rights map[string]*definition.Access) {
	for id, a := range rights {
		if a != nil && a.APIID == "" {
			a.APIID = id
		}
	}
}

// meaningful are members whose zero differs from their absence; free are members with
// free contents.
var (
	meaningful = []string{"active", "depth_base"}
	free       = []string{"meta_data", "config_data", labelsMember, refsMember}
	unordered  = []string{"tags", "versions", "allowed_ips", "blacklisted_ips", "client_certificates"}
)

// plain removes members with zero values. Empty objects are kept: an access right without
// members grants everything.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if slices.Contains(free, name) {
				continue
			}
			if isZero(member) && !slices.Contains(meaningful, name) {
				delete(v, name)
				continue
			}
			v[name] = plain(member)
			if list, ok := v[name].([]any); ok && slices.Contains(unordered, name) {
				sortTexts(list)
			}
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return value
}

func isZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		f, err := v.Float64()
		return err == nil && f == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func sortTexts(list []any) {
	slices.SortFunc(list, func(a, b any) int {
		x, _ := a.(string)
		y, _ := b.(string)
		return cmp.Compare(x, y)
	})
}

// labelsOf removes the labels from a stored object and returns them.
func labelsOf(body []byte) map[string]string {
	var stored struct {
		Labels map[string]string `json:"x-labels"`
	}
	if json.Unmarshal(body, &stored) != nil { // invalid labels
		return nil
	}
	return maps.Clone(stored.Labels)
}

// encode returns JSON without HTML escapes.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
