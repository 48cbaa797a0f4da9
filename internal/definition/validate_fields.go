package definition

import "github.com/sluicegate/sluice/internal/definition/object"

// Bounds of the lists of one access entry.
const (
	maxTypes  = 10_000
	maxFields = 10_000 // of one type, and of field_access_rights
)

// checkFieldRules checks what an access entry says about a GraphQL schema. It
// does not know the schema, so that a name may be of no type in it.
func (p *Problems) checkFieldRules(path string, a *Access) {
	p.checkTypes(path+".allowed_types", a.AllowedTypes)
	p.checkTypes(path+".restricted_types", a.RestrictedTypes)
	path += ".field_access_rights"
	p.checkCount(path, len(a.FieldAccessRights), maxFields)
	seen := make(map[[2]string]bool, len(a.FieldAccessRights))
	for i, f := range a.FieldAccessRights {
		at, name := object.Item(path, i), [2]string{f.TypeName, f.FieldName}
		if !isGraphQLName(f.TypeName) {
			p.addf(at+".type_name", "must be the name of a GraphQL type, such as Query")
		}
		if !isGraphQLName(f.FieldName) {
			p.addf(at+".field_name", "must be the name of a GraphQL field")
		}
		if seen[name] {
			p.addf(at, "limits %s.%s, as an entry before it does", f.TypeName, f.FieldName)
		}
		seen[name] = true
		p.checkSize(at+".limits.max_query_depth", int64(f.Limits.MaxQueryDepth), maxRate)
	}
}

func (p *Problems) checkTypes(path string, types []TypeFields) {
	p.checkCount(path, len(types), maxTypes)
	seen := make(map[string]bool, len(types))
	for i, t := range types {
		at := object.Item(path, i)
		switch {
		case !isGraphQLName(t.Name):
			p.addf(at+".name", "must be the name of a GraphQL type, such as Query")
		case seen[t.Name]:
			p.addf(at+".name", "%s stands twice; put all of its fields in one entry", t.Name)
		}
		seen[t.Name] = true
		if len(t.Fields) == 0 {
			p.addf(at+".fields", "must name fields, or * for all of the type")
		}
		p.checkCount(at+".fields", len(t.Fields), maxFields)
		for j, f := range t.Fields {
			if f != "*" && !isGraphQLName(f) {
				p.addf(object.Item(at+".fields", j), "must be the name of a GraphQL field, or * for all of the type")
			}
		}
	}
}

// checkComplexity checks the limits on one GraphQL operation.
func (p *Problems) checkComplexity(path string, l *Limits) {
	p.checkSize(object.Member(path, "max_query_depth"), int64(l.MaxQueryDepth), maxRate)
	p.checkSize(object.Member(path, "max_query_aliases"), int64(l.MaxQueryAliases), maxRate)
	p.checkSize(object.Member(path, "max_query_root_fields"), int64(l.MaxQueryRootFields), maxRate)
	p.checkSize(object.Member(path, "max_query_directives"), int64(l.MaxQueryDirectives), maxRate)
	p.checkSize(object.Member(path, "max_query_tokens"), int64(l.MaxQueryTokens), maxRate)
	p.checkSize(object.Member(path, "max_query_cost"), l.MaxQueryCost, maxQuota)
}

func (p *Problems) checkSize(path string, n, most int64) {
	if n < -1 || n > most {
		p.addf(path, "must be from 1 to %d, -1 (unlimited) or 0 (not set)", most)
	}
}
