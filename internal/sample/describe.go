package sample

import (
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// describer answers introspection from the tables of a schema, which keep neither
// descriptions nor reasons.
type describer struct{ s *schema.Schema }

// root adds __schema and __type to the query's own fields.
func (d *describer) root(own object) object {
	return object{typ: own.typ, get: func(field string, args arguments) any {
		switch field {
		case "__schema":
			return d.schema()
		case "__type":
			name, _ := args.text("name")
			t, found := d.s.TypeNamed([]byte(name))
			if !found {
				return nil
			}
			return d.ref(schema.Named(t))
		}
		return own.get(field, args)
	}}
}

// members is an object with fixed fields; those that are not there are null.
func members(typ string, fields map[string]func(arguments) any) object {
	return object{typ: typ, get: func(field string, args arguments) any {
		if f := fields[field]; f != nil {
			return f(args)
		}
		return nil
	}}
}

func constant(value any) func(arguments) any { return func(arguments) any { return value } }

func (d *describer) schema() object {
	return members("__Schema", map[string]func(arguments) any{
		"types": func(arguments) any {
			var all []any
			for i := range d.s.Types {
				all = append(all, d.ref(schema.Named(schema.TypeID(i))))
			}
			return all
		},
		"queryType":        func(arguments) any { return d.orNull(d.s.Query) },
		"mutationType":     func(arguments) any { return d.orNull(d.s.Mutation) },
		"subscriptionType": func(arguments) any { return d.orNull(d.s.Subscription) },
		"directives": func(arguments) any {
			var all []any
			for i := range d.s.Directives {
				all = append(all, d.directive(&d.s.Directives[i]))
			}
			return all
		},
	})
}

func (d *describer) orNull(t schema.TypeID) any {
	if t == schema.NoType {
		return nil
	}
	return d.ref(schema.Named(t))
}

// ref describes a type with its wrappers.
func (d *describer) ref(r schema.TypeRef) object {
	switch {
	case r.IsNonNull(), r.IsList():
		kind := "LIST"
		if r.IsNonNull() {
			kind = "NON_NULL"
		}
		return members("__Type", map[string]func(arguments) any{
			"kind": constant(kind), "ofType": func(arguments) any { return d.ref(r.Inner()) },
		})
	}
	return d.named(r.Type())
}

var kinds = [...]string{
	schema.Scalar: "SCALAR", schema.Object: "OBJECT", schema.Interface: "INTERFACE",
	schema.Union: "UNION", schema.Enum: "ENUM", schema.InputObject: "INPUT_OBJECT",
}

func (d *describer) named(id schema.TypeID) object {
	t := &d.s.Types[id]
	fields := map[string]func(arguments) any{"kind": constant(kinds[t.Kind]), "name": constant(t.Name)}
	switch t.Kind {
	case schema.Object, schema.Interface:
		fields["fields"] = func(args arguments) any { return d.fields(t, args) }
		fields["interfaces"] = func(arguments) any { return d.list(d.s.Implements(id)) }
	case schema.Enum:
		fields["enumValues"] = func(args arguments) any { return d.values(t, args) }
	case schema.InputObject:
		fields["inputFields"] = func(args arguments) any { return d.inputs(t.Inputs, args) }
		fields["isOneOf"] = constant(t.OneOf)
	}
	if t.Kind == schema.Interface || t.Kind == schema.Union {
		fields["possibleTypes"] = func(arguments) any { return d.possible(id) }
	}
	return members("__Type", fields)
}

func (d *describer) list(types []schema.TypeID) []any {
	all := []any{}
	for _, t := range types {
		all = append(all, d.ref(schema.Named(t)))
	}
	return all
}

func (d *describer) possible(id schema.TypeID) []any {
	all, set := []any{}, d.s.Possible(id)
	for i := range d.s.Types {
		if t := schema.TypeID(i); set.Has(t) {
			all = append(all, d.ref(schema.Named(t)))
		}
	}
	return all
}

// shown tells whether what may be deprecated is asked for.
func shown(deprecated bool, args arguments) bool {
	return !deprecated || args["includeDeprecated"] == true
}

func (d *describer) fields(t *schema.Type, args arguments) []any {
	all := []any{}
	for _, f := range d.s.Fields[t.Fields.Lo:t.Fields.Hi] {
		if strings.HasPrefix(f.Name, "__") || !shown(f.Deprecated, args) {
			continue
		}
		all = append(all, members("__Field", map[string]func(arguments) any{
			"name": constant(f.Name), "isDeprecated": constant(f.Deprecated),
			"type": func(arguments) any { return d.ref(f.Type) },
			"args": func(args arguments) any { return d.inputs(f.Arguments, args) },
		}))
	}
	return all
}

func (d *describer) values(t *schema.Type, args arguments) []any {
	all := []any{}
	for _, v := range d.s.Values[t.Values.Lo:t.Values.Hi] {
		if shown(v.Deprecated, args) {
			all = append(all, members("__EnumValue", map[string]func(arguments) any{
				"name": constant(v.Name), "isDeprecated": constant(v.Deprecated),
			}))
		}
	}
	return all
}

func (d *describer) inputs(span schema.Span, args arguments) []any {
	all := []any{}
	for _, in := range d.s.Inputs[span.Lo:span.Hi] {
		if !shown(in.Deprecated, args) {
			continue
		}
		var byDefault any
		if in.HasDefault {
			byDefault = in.Default
		}
		all = append(all, members("__InputValue", map[string]func(arguments) any{
			"name": constant(in.Name), "isDeprecated": constant(in.Deprecated), "defaultValue": constant(byDefault),
			"type": func(arguments) any { return d.ref(in.Type) },
		}))
	}
	return all
}

func (d *describer) directive(v *schema.Directive) object {
	return members("__Directive", map[string]func(arguments) any{
		"name": constant(v.Name), "isRepeatable": constant(v.Repeatable),
		"args": func(args arguments) any { return d.inputs(v.Arguments, args) },
		"locations": func(arguments) any {
			all := []any{}
			for at, name := range locations {
				if v.Allows(schema.DirectiveLocation(at)) {
					all = append(all, name)
				}
			}
			return all
		},
	})
}

var locations = [...]string{
	schema.OnQuery: "QUERY", schema.OnMutation: "MUTATION", schema.OnSubscription: "SUBSCRIPTION", schema.OnField: "FIELD",
	schema.OnFragmentDefinition: "FRAGMENT_DEFINITION", schema.OnFragmentSpread: "FRAGMENT_SPREAD",
	schema.OnInlineFragment: "INLINE_FRAGMENT", schema.OnVariableDefinition: "VARIABLE_DEFINITION",
	schema.OnSchema: "SCHEMA", schema.OnScalar: "SCALAR", schema.OnObject: "OBJECT",
	schema.OnFieldDefinition: "FIELD_DEFINITION", schema.OnArgumentDefinition: "ARGUMENT_DEFINITION",
	schema.OnInterface: "INTERFACE", schema.OnUnion: "UNION", schema.OnEnum: "ENUM", schema.OnEnumValue: "ENUM_VALUE",
	schema.OnInputObject: "INPUT_OBJECT", schema.OnInputFieldDefinition: "INPUT_FIELD_DEFINITION",
}
