package graph

import (
	"slices"

	"github.com/wundergraph/astjson"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// A shaper writes the parts of responses that an operation selects, as the resolver takes
// them: with response keys in place of the names of members, and the types of objects.
type shaper struct {
	schema *schema.Schema
	out    []byte
}

// value writes the value of a field, found in what is above it.
func (s *shaper) value(sh *shape, above *astjson.Value) {
	v := above
	if !sh.mapping.Whole {
		v = at(above, sh.mapping.Path)
	}
	s.typed(sh, v, s.schema.Fields[sh.field].Type)
}

// typed writes a value of a type. What does not fit is written as it is: the resolver
// reports it with its path.
func (s *shaper) typed(sh *shape, v *astjson.Value, t schema.TypeRef) {
	t = t.Nullable()
	switch {
	case v == nil || v.Type() == astjson.TypeNull:
		s.out = append(s.out, "null"...)
	case t.IsList() && v.Type() == astjson.TypeArray:
		s.out = append(s.out, '[')
		for i, item := range v.GetArray() {
			if i > 0 {
				s.out = append(s.out, ',')
			}
			s.typed(sh, item, t.Inner())
		}
		s.out = append(s.out, ']')
	case t.IsNamed() && s.schema.Types[t.Type()].Kind.Composite() && v.Type() == astjson.TypeObject:
		s.object(sh, v, t.Type())
	case t.IsNamed() && s.schema.Types[t.Type()].Kind == schema.Scalar && s.schema.Types[t.Type()].BuiltIn:
		s.scalar(v, s.schema.Types[t.Type()].Name)
	default:
		s.out = v.MarshalTo(s.out)
	}
}

// scalar writes a scalar, in the form that its type has by the specification of GraphQL: a
// number is an ID, and a String.
func (s *shaper) scalar(v *astjson.Value, name string) {
	kind := v.Type()
	if (name == "ID" || name == "String") && kind == astjson.TypeNumber || name == "String" && (kind == astjson.TypeTrue || kind == astjson.TypeFalse) {
		s.out = append(v.MarshalTo(append(s.out, '"')), '"')
		return
	}
	s.out = v.MarshalTo(s.out)
}

func (s *shaper) object(sh *shape, v *astjson.Value, t schema.TypeID) {
	is := s.schema.Types[t].Name
	if s.schema.Types[t].Kind != schema.Object {
		is = string(v.GetStringBytes("__typename"))
	}
	id, known := s.schema.TypeNamed([]byte(is))
	s.out = append(jsonscan.AppendString(append(s.out, `{"__typename":`...), []byte(is)), "}"...)
	if !known {
		return // the resolver reports the name
	}
	s.out = s.out[:len(s.out)-1]
	for i := range sh.children {
		child := &sh.children[i]
		if child.on != nil && !contains(child.on, id) {
			continue
		}
		if child.typename && child.key == schema.Typename {
			continue
		}
		s.out = append(append(append(s.out, ',', '"'), child.key...), `":`...)
		if child.typename {
			s.out = jsonscan.AppendString(s.out, []byte(is))
			continue
		}
		s.value(child, v)
	}
	s.out = append(s.out, '}')
}

func contains(types []schema.TypeID, t schema.TypeID) bool {
	return slices.Contains(types, t)
}
