package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

func (v *Validator) suggestTypes(name syntax.Span) string                     { return "" }
func (v *Validator) suggestFields(name syntax.Span, t schema.TypeID) string   { return "" }
func (v *Validator) suggestInputs(name syntax.Span, among schema.Span) string { return "" }
func (v *Validator) suggestValues(name string, t schema.TypeID) string        { return "" }
