package catalogue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/visible"
	"github.com/sluicegate/sluice/internal/rights"
)

// cut removes from a document what a key of the entry's policy may not call: operations
// of OpenAPI whose paths are not allowed, with the schemas that they alone use, and
// GraphQL fields that its rules refuse.
func (s *Service) cut(ctx context.Context, org string, row *store.CatalogueEntry, shown *Documentation) error {
	may, err := s.plan(ctx, org, row)
	if err != nil || may == nil {
		return err
	}
	switch {
	case shown.Schema != "":
		shown.Schema, err = cutSchema(shown.Schema, may)
	case shown.OpenAPI != nil && len(may.AllowedURLs) > 0:
		shown.OpenAPI, err = cutOperations(shown.OpenAPI, may, shown.listenPath)
	}
	return err
}

// plan returns what a key of the entry's policy may do with its API; nil: everything, as
// there is no policy, or no key.
func (s *Service) plan(ctx context.Context, org string, row *store.CatalogueEntry) (*rights.Access, error) {
	entry, err := entryOf(row)
	if err != nil || entry.IsKeyless || entry.PolicyID == "" || entry.APIID == "" {
		return nil, err
	}
	_, policies, err := s.store.OfferTargets(ctx, org, []store.CatalogueEntry{*row})
	if err != nil {
		return nil, err
	}
	policy := policies[entry.PolicyID]
	if policy == nil { // deleted at this moment
		return nil, rest.NotFound(noObject)
	}
	return accessOf(org, policy, entry.APIID)
}

// accessOf returns what a key with a policy alone may do with an API.
func accessOf(org string, policy *store.OfferedPolicy, api string) (*rights.Access, error) {
	set, err := store.PolicySet([][]byte{policy.Body})
	if err != nil {
		return nil, err
	}
	all, err := rights.Effective(&definition.Session{OrgID: org, ApplyPolicies: []string{policy.ID}}, set)
	if err != nil {
		return nil, rest.NotFound("The plan of this entry cannot be used at the moment")
	}
	may, ok := all.For(api)
	if !ok {
		return nil, rest.NotFound("The plan of this entry does not include the API")
	}
	return may, nil
}

// cutSchema returns the part of a schema whose fields may be selected.
func cutSchema(text string, may *rights.Access) (string, error) {
	doc, err := sdl.Parse(text)
	if doc == nil {
		return "", fmt.Errorf("reading a cleaned schema: %w", err)
	}
	compiled := schema.Compile(doc)
	table := rules.Compile(compiled, may, rules.Options{})
	if !table.HidesFields() {
		return text, nil
	}
	left, err := visible.Cut(compiled, table.Passes).SDL(doc)
	if err == nil && left == "" {
		err = rest.NotFound("The plan of this entry admits no query")
	}
	return left, err
}

// allowedURLs are the methods and paths that a key may call; none: all.
type allowedURLs []allowedURL

type allowedURL struct {
	methods []string
	path    *regexp.Regexp
}

func compileAllowed(list []rights.Item[definition.AllowedURL]) (all allowedURLs, err error) {
	for _, item := range list {
		path, err := regexp.Compile(item.Value.URL)
		if err != nil {
			return nil, fmt.Errorf("allowed_urls: %w", err)
		}
		all = append(all, allowedURL{item.Value.Methods, path})
	}
	return all, nil
}

// fillers stand for the parameters of a path: one that an expression takes is enough.
var fillers = []string{"1", "a", "abc", "7f0d9b52-6b1e-4d2c-9a53-0e3c1f7a8b90", "2026-01-31"}

var parameter = regexp.MustCompile(`\{[^{}/]*\}`)

// allow reports whether a key may call a path below the listen path, which is what gateways
// compare. Parameters stand in braces.
func (u allowedURLs) allow(method, path string) bool {
	if len(u) == 0 {
		return true
	}
	for _, filler := range fillers {
		filled := parameter.ReplaceAllLiteralString(path, filler)
		for i := range u {
			if slices.Contains(u[i].methods, method) && u[i].path.MatchString(filled) {
				return true
			}
		}
		if filled == path {
			return false
		}
	}
	return false
}

// operationMethods are the members of a path that are operations.
var operationMethods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

// cutOperations returns a description without the operations that may not be called, and
// without the components that none of the others uses. listen is the listen path of the API,
// without a final slash.
func cutOperations(text json.RawMessage, may *rights.Access, listen string) (json.RawMessage, error) {
	allowed, err := compileAllowed(may.AllowedURLs)
	if err != nil {
		return nil, err
	}
	doc, err := readMembers(text)
	if err != nil {
		return nil, err
	}
	prefix := prefixOf(doc)
	var kept members
	paths, err := readMembers(doc.get("paths"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		item, err := readMembers(path.value)
		if err != nil {
			return nil, err
		}
		left, operations := members{}, 0
		for _, m := range item {
			isOperation := slices.Contains(operationMethods, m.name)
			if isOperation && !allowed.allow(strings.ToUpper(m.name), below(prefix+path.name, listen)) {
				continue
			}
			if isOperation {
				operations++
			}
			left = append(left, m)
		}
		if operations > 0 {
			kept = append(kept, member{path.name, left.write()})
		}
	}
	doc.set("paths", kept.write())
	doc.drop("webhooks")
	if err := doc.prune(); err != nil {
		return nil, err
	}
	return doc.write(), nil
}

// below returns the part of a path behind a listen path. One that is elsewhere stays whole.
func below(path, listen string) string {
	if rest, found := strings.CutPrefix(path, listen); found && (rest == "" || rest[0] == '/') {
		return cmp.Or(rest, "/")
	}
	return path
}

// prefixOf returns the path that a description's paths are below.
func prefixOf(doc members) string {
	var prefix string
	if json.Unmarshal(doc.get("basePath"), &prefix) == nil && prefix != "" {
		return strings.TrimRight(prefix, "/")
	}
	var servers []struct{ URL string }
	if json.Unmarshal(doc.get("servers"), &servers) != nil || len(servers) == 0 {
		return ""
	}
	prefix = servers[0].URL
	if rest, found := strings.CutPrefix(prefix, "//"); found {
		_, path, _ := strings.Cut(rest, "/")
		prefix = "/" + path
	}
	return strings.TrimRight(prefix, "/")
}

// members are those of a JSON object, in order.
type members []member

type member struct {
	name  string
	value json.RawMessage
}

func readMembers(text json.RawMessage) (all members, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.Join(errors.New("reading a cleaned description: an object is expected"), err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("reading a cleaned description: %w", err)
		}
		m := member{name: fmt.Sprint(name)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, fmt.Errorf("reading a cleaned description: %w", err)
		}
		all = append(all, m)
	}
	return all, nil
}

func (m members) write() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, one := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(one.name) // a text
		b.Write(name)
		b.WriteByte(':')
		b.Write(one.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (m members) get(name string) json.RawMessage {
	for _, one := range m {
		if one.name == name {
			return one.value
		}
	}
	return nil
}

func (m members) set(name string, value json.RawMessage) {
	for i := range m {
		if m[i].name == name {
			m[i].value = value
		}
	}
}

func (m *members) drop(name string) {
	*m = slices.DeleteFunc(*m, func(one member) bool { return one.name == name })
}

// references are texts that lead to a place in the same document.
var references = regexp.MustCompile(`"#/([^"\\]+)"`)

// reusable are the members of version 2 that hold what references lead to.
var reusable = []string{"definitions", "parameters", "responses"}

// prune drops the components that nothing refers to any more.
func (m members) prune() error {
	var pending [][]byte
	for _, one := range m {
		if one.name != "components" && !slices.Contains(reusable, one.name) {
			pending = append(pending, one.value)
		}
	}
	kinds, err := readMembers(m.get("components"))
	if err != nil {
		return err
	}
	groups := make(map[string]members) // by the beginning of references to them
	for _, kind := range kinds {
		if groups["components/"+kind.name], err = readMembers(kind.value); err != nil {
			return err
		}
	}
	for _, name := range reusable {
		if groups[name], err = readMembers(m.get(name)); err != nil {
			return err
		}
	}
	used := groupsUsed(groups, pending)
	for i, kind := range kinds {
		if kind.name != "securitySchemes" {
			kinds[i].value = groups["components/"+kind.name].only(used["components/"+kind.name]).write()
		}
	}
	if kinds != nil {
		m.set("components", kinds.write())
	}
	for _, name := range reusable {
		m.set(name, groups[name].only(used[name]).write())
	}
	return nil
}

// groupsUsed returns the components that some texts refer to, directly or through others.
func groupsUsed(groups map[string]members, pending [][]byte) map[string]map[string]bool {
	used := make(map[string]map[string]bool)
	decode := strings.NewReplacer("~1", "/", "~0", "~")
	for len(pending) > 0 {
		text := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, found := range references.FindAllSubmatch(text, -1) {
			parts := strings.Split(string(found[1]), "/")
			group, at := parts[0], 1
			if group == "components" && len(parts) > 2 {
				group, at = group+"/"+parts[1], 2
			}
			if len(parts) <= at {
				continue
			}
			name := decode.Replace(parts[at])
			if used[group] == nil {
				used[group] = make(map[string]bool)
			}
			if value := groups[group].get(name); value != nil && !used[group][name] {
				used[group][name] = true
				pending = append(pending, value)
			}
		}
	}
	return used
}

// only returns the members with some names.
func (m members) only(names map[string]bool) (kept members) {
	for _, one := range m {
		if names[one.name] {
			kept = append(kept, one)
		}
	}
	return kept
}
