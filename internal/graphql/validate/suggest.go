package validate

import (
	"cmp"
	"iter"
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// named returns the names of rows.
func named[T any](rows []T, name func(*T) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range rows {
			if !yield(name(&rows[i])) {
				return
			}
		}
	}
}

// suggest returns a question for names that are like one.
func (v *Validator) suggest(name, words string, options iter.Seq[string]) string {
	return didYouMean(words, v.finder.like(name, options))
}

func (v *Validator) suggestTypes(name syntax.Span) string {
	if !v.o.Suggestions || v.over {
		return ""
	}
	return v.suggest(v.text(name), "", named(v.s.Types, func(t *schema.Type) string { return t.Name }))
}

func (v *Validator) suggestInputs(name syntax.Span, among schema.Span) string {
	if !v.o.Suggestions || v.over {
		return ""
	}
	return v.suggest(v.text(name), "", named(v.s.Inputs[among.Lo:among.Hi], func(i *schema.Input) string { return i.Name }))
}

func (v *Validator) suggestValues(name string, t schema.TypeID) string {
	if !v.o.Suggestions || v.over {
		return ""
	}
	among := v.s.Types[t].Values
	return v.suggest(name, "the enum value ", named(v.s.Values[among.Lo:among.Hi], func(value *schema.Value) string { return value.Name }))
}

// suggestFields proposes types that have the field, else fields of the type.
func (v *Validator) suggestFields(name syntax.Span, t schema.TypeID) string {
	if !v.o.Suggestions || v.over {
		return ""
	}
	question := didYouMean("to use an inline fragment on ", v.typesWith(name, t))
	if question == "" && v.s.Types[t].Kind != schema.Union {
		among := v.s.Types[t].Fields
		question = v.suggest(v.text(name), "", named(v.s.Fields[among.Lo:among.Hi], func(f *schema.Field) string {
			if f.Name[0] == '_' && len(f.Name) > 1 && f.Name[1] == '_' {
				return "" // introspection is not proposed
			}
			return f.Name
		}))
	}
	if question == "" {
		return ""
	}
	return "." + question
}

// typesWith returns the names of the objects that an interface or union can turn
// out to be, and of their interfaces, which have a field; first those that more
// of the objects have in common.
func (v *Validator) typesWith(name syntax.Span, t schema.TypeID) (found []string) {
	if v.s.Types[t].Kind == schema.Object {
		return nil
	}
	field := v.doc.Bytes(name)
	count := map[schema.TypeID]int{}
	each(v.s.Possible(t), func(object schema.TypeID) {
		if _, ok := v.s.FieldNamed(object, field); !ok {
			return
		}
		count[object]++
		for _, of := range v.s.Implements(object) {
			if _, ok := v.s.FieldNamed(of, field); ok {
				count[of]++
			}
		}
	})
	types := make([]schema.TypeID, 0, len(count))
	for of := range count {
		types = append(types, of)
	}
	slices.SortFunc(types, func(a, b schema.TypeID) int {
		return cmp.Or(count[b]-count[a], v.general(a, b), compareNatural(v.s.Types[a].Name, v.s.Types[b].Name))
	})
	for _, of := range types {
		found = append(found, v.s.Types[of].Name)
	}
	return found
}

// general orders an interface before the types that implement it.
func (v *Validator) general(a, b schema.TypeID) int {
	switch {
	case slices.Contains(v.s.Implements(b), a):
		return -1
	case slices.Contains(v.s.Implements(a), b):
		return 1
	default:
		return 0
	}
}
