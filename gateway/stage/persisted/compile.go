package persisted

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/graphql/values"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// maxNesting bounds the nesting of configured variables. Definitions are not nested
// deeper.
const maxNesting = 64

// A compiler compiles the stored operations of one API.
type compiler struct {
	context   bool           // context variables are replaced
	schema    *schema.Schema // nil: none is known
	checking  validate.Options
	doc       syntax.Document
	validator validate.Validator
	checker   values.Checker
}

func newCompiler(def *definition.API, governed *graphql.Stage) *compiler {
	c := &compiler{context: def.EnableContextVars}
	if governed == nil {
		return c
	}
	c.schema = governed.Schema()
	c.checking.Suggestions = true
	if cost := def.GraphQL.Cost; cost != nil {
		c.checking.ListSize, c.checking.SizeArguments = cost.ListSize, cost.SizeArguments
	}
	return c
}

// compile compiles one operation. The error is why it is invalid.
func (c *compiler) compile(o *definition.PersistedOperation) (*route, error) {
	source := []byte(o.Operation)
	if err := syntax.Parse(&c.doc, source, syntax.Limits{}); err != nil {
		return nil, fmt.Errorf("operation: %w", err)
	}
	if err := c.checkOperation(); err != nil {
		return nil, fmt.Errorf("operation: %w", err)
	}
	r := &route{}
	if c.schema != nil {
		if err := c.checkSchema(o, r); err != nil {
			return nil, err
		}
	}
	names, params := parametersOf(o.Path)
	r.params = params
	b := builder{compiler: c, opts: vars.Options{Context: c.context, Path: names}}
	b.text = append(b.text, `{"query":`...)
	b.text = jsonscan.AppendString(b.text, source)
	b.text = append(b.text, `,"variables":`...)
	r.variables = len(b.text)
	if err := b.variables(o.Variables); err != nil {
		return nil, err
	}
	b.text = append(b.text, '}')
	r.pieces, r.counted = b.done()
	return r, nil
}

// checkOperation returns an error unless the document has exactly one operation and
// it is no subscription.
func (c *compiler) checkOperation() error {
	switch {
	case len(c.doc.Operations) != 1:
		return fmt.Errorf("the document holds %d operations; it must hold one", len(c.doc.Operations))
	case c.doc.Operations[0].Kind == syntax.Subscription:
		return errors.New("must be a query or a mutation")
	}
	return nil
}

// checkSchema checks the document against the schema and configured variables
// against their types.
func (c *compiler) checkSchema(o *definition.PersistedOperation, r *route) error {
	if errs := c.validator.Check(c.schema, &c.doc, c.checking); len(errs) > 0 {
		return fmt.Errorf("operation: %w", join(errs))
	}
	facts, err := c.validator.Facts(c.schema, &c.doc, 0, c.checking)
	if err != nil {
		return fmt.Errorf("operation: %w", err)
	}
	r.facts = facts
	size := make([]int64, 1)
	for i := range facts.Variables {
		v := &facts.Variables[i]
		raw, given := o.Variables[v.Name]
		json := []byte("{}")
		if given && strings.Contains(string(raw), "$") {
			continue // replaced and checked for each call
		}
		if given {
			json = slices.Concat([]byte("{"), jsonscan.AppendString(nil, []byte(v.Name)), []byte(":"), raw, []byte("}"))
		}
		if errs := c.checker.Check(c.schema, facts.Variables[i:i+1], json, size, values.Options{}); len(errs) > 0 {
			return fmt.Errorf("variables: %w", join(errs))
		}
	}
	return nil
}

func join(errs []*syntax.Error) error {
	all := make([]error, len(errs))
	for i, e := range errs {
		all[i] = e
	}
	return errors.Join(all...)
}

// parametersOf returns the names of a path's parameters, never nil, and their
// segments.
func parametersOf(path string) (names []string, at []int) {
	names = []string{}
	for i, s := range strings.Split(strings.Trim(path, "/"), "/") {
		if strings.HasPrefix(s, "{") {
			names, at = append(names, strings.Trim(s, "{}")), append(at, i)
		}
	}
	return names, at
}

// A builder builds the pieces of one body.
type builder struct {
	*compiler
	opts     vars.Options
	pieces   []piece
	text     []byte // behind the last placeholder
	variable string // being built
	counted  bool
}

func (b *builder) done() ([]piece, bool) {
	return append(b.pieces, piece{before: b.text}), b.counted
}

// variables builds the object of all variables.
func (b *builder) variables(all map[string]json.RawMessage) error {
	b.text = append(b.text, '{')
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b.text = append(b.text, ',')
		}
		b.variable = name
		b.text = jsonscan.AppendString(b.text, []byte(name))
		b.text = append(b.text, ':')
		s := jsonscan.New(all[name], maxNesting)
		if err := b.value(&s, b.declared(name)); err != nil {
			return fmt.Errorf("variables.%s: %w", name, err)
		}
		if !s.End() {
			return fmt.Errorf("variables.%s: %w", name, s.Err())
		}
	}
	b.text = append(b.text, '}')
	return nil
}

// declared returns the name of a variable's type without lists and non-nulls, "" if
// the operation has no such variable.
func (b *builder) declared(name string) string {
	for i := range b.doc.Variables {
		v := &b.doc.Variables[i]
		if string(b.doc.Bytes(v.Name)) != name {
			continue
		}
		ref := &b.doc.Types[v.Type]
		for ref.Kind != syntax.NamedType {
			ref = &b.doc.Types[ref.Of]
		}
		return b.doc.Text(ref.Text)
	}
	return ""
}

// value builds the next value, which has a type or is a list of it.
func (b *builder) value(s *jsonscan.Scanner, typ string) error {
	switch s.Kind() {
	case jsonscan.Object:
		return b.object(s, typ)
	case jsonscan.Array:
		return b.array(s, typ)
	}
	v := s.Value()
	if v.Kind != jsonscan.String {
		b.text = append(b.text, v.Raw...)
		return nil
	}
	return b.str(v, typ)
}

func (b *builder) object(s *jsonscan.Scanner, typ string) error {
	b.text = append(b.text, '{')
	first := true
	for s.Object(); s.Member(); first = false {
		if !first {
			b.text = append(b.text, ',')
		}
		b.text = append(b.text, '"')
		b.text = append(b.text, s.Name()...)
		b.text = append(b.text, `":`...)
		if err := b.value(s, b.field(typ, s.Name())); err != nil {
			return err
		}
	}
	b.text = append(b.text, '}')
	return nil
}

// field returns the type name of an input object's field, "" if it is unknown.
func (b *builder) field(typ string, raw []byte) string {
	name, err := jsonscan.Unescape(nil, raw)
	if b.schema == nil || err != nil {
		return ""
	}
	t, ok := b.schema.TypeNamed([]byte(typ))
	if !ok {
		return ""
	}
	i, ok := b.schema.InputNamed(b.schema.Types[t].Inputs, name)
	if !ok {
		return ""
	}
	return b.schema.Types[b.schema.Inputs[i].Type.Type()].Name
}

func (b *builder) array(s *jsonscan.Scanner, typ string) error {
	b.text = append(b.text, '[')
	first := true
	for s.Array(); s.Element(); first = false {
		if !first {
			b.text = append(b.text, ',')
		}
		if err := b.value(s, typ); err != nil {
			return err
		}
	}
	b.text = append(b.text, ']')
	return nil
}

// str builds a string, or a placeholder if it refers to a variable.
func (b *builder) str(v jsonscan.Value, typ string) error {
	decoded, err := jsonscan.Unescape(nil, v.Text())
	if err != nil {
		b.text = append(b.text, v.Raw...) // a lone surrogate refers to no variable
		return nil
	}
	t, err := vars.Compile(string(decoded), b.opts)
	if err != nil {
		return err
	}
	if constant, ok := t.Constant(); ok {
		b.text = jsonscan.AppendString(b.text, []byte(constant))
		return nil
	}
	b.pieces = append(b.pieces, piece{before: b.text, value: t, kind: kindOf(typ), variable: b.variable, counted: t.Counted()})
	b.text = nil
	b.counted = b.counted || t.Counted()
	return nil
}

// kindOf returns the kind of a placeholder of a type. IDs and custom scalars accept
// strings.
func kindOf(typ string) kind {
	switch typ {
	case "Int":
		return integer
	case "Float":
		return number
	case "Boolean":
		return boolean
	}
	return text
}
