package change

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

func (c *comparison) interfaces(was, is schema.TypeID) {
	name := c.old.Types[was].Name
	before, after := namesOf(c.old, c.old.Implements(was)), namesOf(c.new, c.new.Implements(is))
	for _, one := range before {
		if !contains(after, one) {
			c.add(Breaking, InterfaceRemoved, name, name, " no longer implements interface ", one, ".")
		}
	}
	for _, one := range after {
		if !contains(before, one) {
			c.add(Dangerous, InterfaceAdded, name, one, " added to interfaces implemented by ", name, ".")
		}
	}
}

func namesOf(s *schema.Schema, types []schema.TypeID) []string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = s.Types[t].Name
	}
	return names
}

func contains(names []string, name string) bool {
	return slices.Contains(names, name)
}

func (c *comparison) members(was, is schema.TypeID) {
	name := c.old.Types[was].Name
	hasNow := func(s *schema.Schema, union schema.TypeID, member string) bool {
		t, found := s.TypeNamed([]byte(member))
		return found && s.Possible(union).Has(t)
	}
	for _, member := range memberNames(c.old, was) {
		if !hasNow(c.new, is, member) {
			c.add(Breaking, TypeRemovedFromUnion, name, member, " was removed from union type ", name, ".")
		}
	}
	for _, member := range memberNames(c.new, is) {
		if !hasNow(c.old, was, member) {
			c.add(Dangerous, TypeAddedToUnion, name, member, " was added to union type ", name, ".")
		}
	}
}

func memberNames(s *schema.Schema, union schema.TypeID) (names []string) {
	members := s.Possible(union)
	for i := range s.Types {
		if members.Has(schema.TypeID(i)) {
			names = append(names, s.Types[i].Name)
		}
	}
	return names
}

func (c *comparison) values(was, is schema.TypeID) {
	name := c.old.Types[was].Name
	before, after := valuesOf(c.old, was), valuesOf(c.new, is)
	for i := range before {
		value, place := &before[i], name+"."+before[i].Name
		now := valueNamed(after, value.Name)
		if now == nil {
			c.add(Breaking, ValueRemovedFromEnum, place, value.Name, " was removed from enum type ", name, ".")
			continue
		}
		c.deprecation(place, value.Deprecated, now.Deprecated)
	}
	for i := range after {
		if value := after[i].Name; valueNamed(before, value) == nil {
			c.add(Dangerous, ValueAddedToEnum, name+"."+value, value, " was added to enum type ", name, ".")
		}
	}
}

func valuesOf(s *schema.Schema, t schema.TypeID) []schema.Value {
	span := s.Types[t].Values
	return s.Values[span.Lo:span.Hi]
}

func valueNamed(values []schema.Value, name string) *schema.Value {
	for i := range values {
		if values[i].Name == name {
			return &values[i]
		}
	}
	return nil
}

func (c *comparison) deprecation(place string, was, is bool) {
	switch {
	case is && !was:
		c.add(Safe, DeprecationChanged, place, place, " was deprecated.")
	case was && !is:
		c.add(Safe, DeprecationChanged, place, place, " is no longer deprecated.")
	}
}

func (c *comparison) fields(was, is schema.TypeID) {
	old, new := &c.old.Types[was], &c.new.Types[is]
	for i := old.Fields.Lo; i < old.Fields.Hi; i++ {
		f := &c.old.Fields[i]
		if !own(f.Name) {
			continue
		}
		place := old.Name + "." + f.Name
		now, found := c.new.FieldNamed(is, []byte(f.Name))
		if !found {
			c.add(Breaking, FieldRemoved, place, place, " was removed.")
			continue
		}
		c.field(place, f, &c.new.Fields[now])
	}
	for i := new.Fields.Lo; i < new.Fields.Hi; i++ {
		f := &c.new.Fields[i]
		if _, found := c.old.FieldNamed(was, []byte(f.Name)); !found && own(f.Name) {
			c.add(Safe, FieldAdded, new.Name+"."+f.Name, new.Name, ".", f.Name, " was added.")
		}
	}
}

func (c *comparison) field(place string, was, is *schema.Field) {
	before, after := c.old.RefString(was.Type), c.new.RefString(is.Type)
	if before != after {
		level := Breaking
		if c.outputStays(was.Type, is.Type) {
			level = Safe
		}
		c.add(level, FieldChangedType, place, place, " changed type from ", before, " to ", after, ".")
	}
	c.deprecation(place, was.Deprecated, is.Deprecated)
	c.inputs(was.Arguments, is.Arguments, argumentsOf(place))
}

func (c *comparison) oneOf(was, is schema.TypeID) {
	name := c.old.Types[was].Name
	switch before, after := c.old.Types[was].OneOf, c.new.Types[is].OneOf; {
	case after && !before:
		c.add(Breaking, OneOfChanged, name, "Input type ", name, " now takes exactly one of its fields.")
	case before && !after:
		c.add(Safe, OneOfChanged, name, "Input type ", name, " no longer takes exactly one of its fields.")
	}
}

func (c *comparison) inputFields(was, is schema.TypeID) {
	old, new := &c.old.Types[was], &c.new.Types[is]
	c.inputs(old.Inputs, new.Inputs, words{
		removed: FieldRemoved, changed: FieldChangedType, defaulted: InputFieldDefaultChanged,
		required: RequiredInputFieldAdded, optional: OptionalInputFieldAdded, adds: Dangerous,
		place:   func(name string) string { return old.Name + "." + name },
		subject: func(name string) string { return old.Name + "." + name },
		removal: func(name string) string { return old.Name + "." + name + " was removed." },
		requirement: func(name string) string {
			return "A required field " + name + " on input type " + old.Name + " was added."
		},
		optionality: func(name string) string {
			return "An optional field " + name + " on input type " + old.Name + " was added."
		},
		changedType:  " changed type from ",
		changedValue: " changed its default value from ",
	})
}

// argumentsOf are the words for arguments of a field.
func argumentsOf(field string) words {
	return words{
		removed: ArgumentRemoved, changed: ArgumentChangedType, defaulted: ArgumentDefaultChanged,
		required: RequiredArgumentAdded, optional: OptionalArgumentAdded, adds: Dangerous,
		place:        func(name string) string { return field + "(" + name + ":)" },
		subject:      func(name string) string { return field + " arg " + name },
		removal:      func(name string) string { return field + " arg " + name + " was removed." },
		requirement:  func(name string) string { return "A required arg " + name + " on " + field + " was added." },
		optionality:  func(name string) string { return "An optional arg " + name + " on " + field + " was added." },
		changedType:  " has changed type from ",
		changedValue: " has changed defaultValue from ",
	}
}

// directiveArguments are the words for arguments of a directive.
func directiveArguments(name string) words {
	directive := "@" + name
	return words{
		removed: DirectiveArgumentRemoved, changed: DirectiveArgumentChanged, defaulted: DirectiveArgumentHasDefault,
		required: RequiredDirectiveArgument, optional: OptionalDirectiveArgument, adds: Safe,
		place:       func(arg string) string { return directive + "(" + arg + ":)" },
		subject:     func(arg string) string { return directive + " arg " + arg },
		removal:     func(arg string) string { return arg + " was removed from " + directive + "." },
		requirement: func(arg string) string { return "A required arg " + arg + " on directive " + directive + " was added." },
		optionality: func(arg string) string {
			return "An optional arg " + arg + " on directive " + directive + " was added."
		},
		changedType:  " has changed type from ",
		changedValue: " has changed defaultValue from ",
	}
}

// words are how changes of one kind of input are named.
type words struct {
	removed, changed, defaulted, required, optional Kind

	adds                                              Level // of an optional one that is added
	place, subject, removal, requirement, optionality func(name string) string
	changedType, changedValue                         string
}

// inputs compares arguments or input fields.
func (c *comparison) inputs(was, is schema.Span, w words) {
	for _, in := range c.old.Inputs[was.Lo:was.Hi] {
		now, found := c.new.InputNamed(is, []byte(in.Name))
		if !found {
			c.add(Breaking, w.removed, w.place(in.Name), w.removal(in.Name))
			continue
		}
		c.input(&in, &c.new.Inputs[now], &w)
	}
	for _, in := range c.new.Inputs[is.Lo:is.Hi] {
		if _, found := c.old.InputNamed(was, []byte(in.Name)); found {
			continue
		}
		if in.Required() {
			c.add(Breaking, w.required, w.place(in.Name), w.requirement(in.Name))
		} else {
			c.add(w.adds, w.optional, w.place(in.Name), w.optionality(in.Name))
		}
	}
}

func (c *comparison) input(was, is *schema.Input, w *words) {
	place, subject := w.place(was.Name), w.subject(was.Name)
	before, after := c.old.RefString(was.Type), c.new.RefString(is.Type)
	if before != after {
		level := Breaking
		if c.inputStays(was.Type, is.Type) {
			level = Safe
		}
		c.add(level, w.changed, place, subject, w.changedType, before, " to ", after, ".")
		if level == Breaking {
			return // the default value goes with the type
		}
	}
	c.deprecation(place, was.Deprecated, is.Deprecated)
	switch {
	case !was.HasDefault && is.HasDefault:
		c.add(Safe, w.defaulted, place, subject, w.changedValue, "none to ", plain(is.Default), ".")
	case was.HasDefault && !is.HasDefault && is.Required():
		c.add(Breaking, w.defaulted, place, subject, " lost its default value and has to be given now.")
	case was.HasDefault && !is.HasDefault:
		c.add(Dangerous, w.defaulted, place, subject, " defaultValue was removed.")
	case was.HasDefault && plain(was.Default) != plain(is.Default):
		c.add(Dangerous, w.defaulted, place, subject, w.changedValue, plain(was.Default), " to ", plain(is.Default), ".")
	}
}

// plain is a default value without what its author chose of layout, so that
// "[1,2]" and "[1, 2]" are the same.
func plain(value string) string {
	var b strings.Builder
	quoted, gap := false, false
	for i := 0; i < len(value); i++ {
		c := value[i]
		if !quoted && strings.IndexByte(" \t\r\n,", c) >= 0 {
			gap = true
			continue
		}
		if gap && b.Len() > 0 && needsGap(b.String()[b.Len()-1], c) {
			b.WriteByte(' ')
		}
		gap = false
		b.WriteByte(c)
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted && i+1 < len(value):
			i++
			b.WriteByte(value[i])
		}
	}
	return b.String()
}

// needsGap reports whether two characters would be read otherwise without a space
// between them.
func needsGap(before, after byte) bool {
	return strings.IndexByte("[{:", before) < 0 && strings.IndexByte("]}:", after) < 0
}

func (c *comparison) directives() {
	for i := range c.old.Directives {
		was := &c.old.Directives[i]
		if !usable(was) {
			continue
		}
		now, found := c.new.DirectiveNamed([]byte(was.Name))
		if !found {
			c.add(Breaking, DirectiveRemoved, "@"+was.Name, "@", was.Name, " was removed.")
			continue
		}
		c.directive(was, &c.new.Directives[now])
	}
	for i := range c.new.Directives {
		if name := c.new.Directives[i].Name; usable(&c.new.Directives[i]) && !hasDirective(c.old, name) {
			c.add(Safe, DirectiveAdded, "@"+name, "@", name, " was added.")
		}
	}
}

// usable reports whether operations can use a directive.
func usable(d *schema.Directive) bool { return d.Locations&(1<<len(locations)-1) != 0 }

func hasDirective(s *schema.Schema, name string) bool {
	_, found := s.DirectiveNamed([]byte(name))
	return found
}

func (c *comparison) directive(was, is *schema.Directive) {
	place := "@" + was.Name
	c.inputs(was.Arguments, is.Arguments, directiveArguments(was.Name))
	switch {
	case was.Repeatable && !is.Repeatable:
		c.add(Breaking, DirectiveRepeatableRemoved, place, "Repeatable flag was removed from ", place, ".")
	case is.Repeatable && !was.Repeatable:
		c.add(Safe, DirectiveRepeatableChanged, place, place, " became repeatable.")
	}
	for at, name := range locations {
		before, after := was.Allows(schema.DirectiveLocation(at)), is.Allows(schema.DirectiveLocation(at))
		switch {
		case before && !after:
			c.add(Breaking, DirectiveLocationRemoved, place, name, " was removed from ", place, ".")
		case after && !before:
			c.add(Safe, DirectiveLocationAdded, place, name, " was added to ", place, ".")
		}
	}
}

// locations names the places where directives of operations can stand.
var locations = [...]string{
	schema.OnQuery: "QUERY", schema.OnMutation: "MUTATION", schema.OnSubscription: "SUBSCRIPTION", schema.OnField: "FIELD",
	schema.OnFragmentDefinition: "FRAGMENT_DEFINITION", schema.OnFragmentSpread: "FRAGMENT_SPREAD",
	schema.OnInlineFragment: "INLINE_FRAGMENT", schema.OnVariableDefinition: "VARIABLE_DEFINITION",
}
