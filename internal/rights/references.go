package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/didyoumean"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// A Catalog finds what access rights name. It keeps the schemas that it has read, and is
// not safe for concurrent use.
type Catalog struct {
	API func(id string) *definition.API // nil for an unknown one

	schemas map[string]*schema.Schema
}

// Check returns a problem for every API, version, type and field that access rights name
// and that does not exist. Versions of an API without versions are ignored, as they are
// when it is called.
func (c *Catalog) Check(rights map[string]*definition.Access) (wrong definition.Problems) {
	for _, id := range slices.Sorted(maps.Keys(rights)) {
		access, at := rights[id], object.Entry("access_rights", id)
		if access == nil {
			continue
		}
		def := c.API(id)
		if def == nil {
			wrong = append(wrong, definition.Problem{Path: at, Message: "names an API that does not exist"})
			continue
		}
		found := check{api: def, at: at}
		found.versions(access.Versions)
		if len(access.AllowedTypes)+len(access.RestrictedTypes)+len(access.FieldAccessRights) > 0 {
			found.fields(access, c.schema(def))
		}
		if wrong = append(wrong, found.wrong...); len(wrong) > object.MaxFaults {
			return wrong[:object.MaxFaults]
		}
	}
	return wrong
}

// schema returns the schema that an API serves, nil if there is none.
func (c *Catalog) schema(def *definition.API) *schema.Schema {
	if !def.IsGraphQL() {
		return nil
	}
	s, known := c.schemas[def.ID]
	if known {
		return s
	}
	s, _, err := schema.LoadServed(def.GraphQL.Schema)
	if err != nil {
		s = nil
	}
	if c.schemas == nil {
		c.schemas = make(map[string]*schema.Schema)
	}
	c.schemas[def.ID] = s
	return s
}

// A check collects what is wrong with the rights to one API.
type check struct {
	api   *definition.API
	at    string
	wrong definition.Problems
}

func (c *check) add(path, format string, args ...any) {
	c.wrong = append(c.wrong, definition.Problem{Path: c.at + path, Message: fmt.Sprintf(format, args...)})
}

func (c *check) versions(names []string) {
	known := c.api.VersionNames()
	if others := c.api.OtherVersions(); others != nil {
		known = append(append(known, others.Name), object.SortedKeys(others.Others)...)
	}
	if known == nil {
		return
	}
	for i, name := range names {
		if !slices.Contains(known, name) {
			c.add(object.Item(".versions", i), "names the version %q, which the API does not have; it has %s", name, strings.Join(known, ", "))
		}
	}
}

// fields checks rules about GraphQL fields. s is nil if the API has no schema.
func (c *check) fields(access *definition.Access, s *schema.Schema) {
	if s == nil {
		if !c.api.IsGraphQL() { // else the schema is invalid, which the API says
			c.add("", "has rules about GraphQL fields (allowed_types, restricted_types or field_access_rights), which the API, without GraphQL, would ignore; leave them out")
		}
		return
	}
	c.lists(s, ".allowed_types", access.AllowedTypes)
	c.lists(s, ".restricted_types", access.RestrictedTypes)
	for i := range access.FieldAccessRights {
		one, at := &access.FieldAccessRights[i], object.Item(".field_access_rights", i)
		if t, ok := c.typeNamed(s, at+".type_name", one.TypeName); ok {
			c.field(s, t, at+".field_name", one.FieldName)
		}
	}
}

func (c *check) lists(s *schema.Schema, path string, types []definition.TypeFields) {
	for i := range types {
		at := object.Item(path, i)
		t, ok := c.typeNamed(s, at+".name", types[i].Name)
		if !ok {
			continue
		}
		for j, name := range types[i].Fields {
			if name != "*" && name != "__typename" {
				c.field(s, t, object.Item(at+".fields", j), name)
			}
		}
	}
}

// typeNamed returns a type with fields.
func (c *check) typeNamed(s *schema.Schema, path, name string) (schema.TypeID, bool) {
	t, ok := s.TypeNamed([]byte(name))
	if !ok {
		t, ok = s.RootNamed(name) // as rules find the root types of a schema that renames them
	}
	switch {
	case !ok:
		c.add(path, "names the type %q, which the API's schema does not have%s", name, suggest(name, composite(s)))
	case s.Types[t].BuiltIn || s.Types[t].Kind != schema.Object && s.Types[t].Kind != schema.Interface:
		c.add(path, "names %q, which is neither an object type nor an interface of the API's schema", name)
		ok = false
	}
	return t, ok
}

// composite returns the names of the types that rules can name.
func composite(s *schema.Schema) (names []string) {
	for i := range s.Types {
		if t := &s.Types[i]; !t.BuiltIn && (t.Kind == schema.Object || t.Kind == schema.Interface) {
			names = append(names, t.Name)
		}
	}
	return names
}

func (c *check) field(s *schema.Schema, t schema.TypeID, path, name string) {
	if f, ok := s.FieldNamed(t, []byte(name)); ok && !s.IsMeta(f) {
		return
	}
	var names []string
	for _, f := range s.Fields[s.Types[t].Fields.Lo:s.Types[t].Fields.Hi] {
		names = append(names, f.Name)
	}
	c.add(path, "names the field %q, which type %s of the API's schema does not have%s", name, s.Types[t].Name, suggest(name, names))
}

func suggest(name string, among []string) string {
	if near := didyoumean.Nearest(name, among); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
