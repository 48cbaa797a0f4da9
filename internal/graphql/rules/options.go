package rules

import (
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// Limits bound one operation. 0 or less is no limit.
type Limits struct {
	Depth      int // with the base
	Aliases    int
	RootFields int
	Directives int
	Tokens     int // of the whole document
	Cost       int64
}

// Options is what an API rules for all who call it.
type Options struct {
	DepthBase   int    // 0 or 1
	HidesSchema bool   // keys may not introspect
	TrustedOnly bool   // only operations that the API stores may be run
	Limits      Limits // Depth applies to every field, whatever the key's limits
}

// OptionsOf returns what an API's definition rules.
func OptionsOf(g *definition.GraphQL) Options {
	o := Options{DepthBase: g.Base(), HidesSchema: g.HidesSchema()}
	if d := g.TrustedDocuments; d != nil {
		o.TrustedOnly = d.Required
	}
	if l := g.Limits; l != nil {
		o.Limits = Limits{
			Depth: l.MaxDepth, Aliases: l.MaxAliases, RootFields: l.MaxRootFields,
			Directives: l.MaxDirectives, Tokens: l.MaxTokens, Cost: l.MaxCost,
		}
	}
	return o
}

// limitsOf returns the stricter limits of key and API, except for Depth, which is
// that of the key.
func limitsOf(may *rights.Access, api Limits) Limits {
	l := api
	l.Depth = 0
	if may == nil {
		return l
	}
	l.Depth = may.Depth.Value
	l.Aliases = stricter(l.Aliases, may.Aliases.Value)
	l.RootFields = stricter(l.RootFields, may.RootFields.Value)
	l.Directives = stricter(l.Directives, may.Directives.Value)
	l.Tokens = stricter(l.Tokens, may.Tokens.Value)
	l.Cost = stricter(l.Cost, may.Cost.Value)
	return l
}

func stricter[T int | int64](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}
