package validate_test

import (
	"fmt"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// An operation is parsed within limits, checked against a schema, and summarised
// for governance.
func Example() {
	s, err := schema.Load(`
		type Query { country(code: ID!): Country }
		type Country { name: String neighbours(first: Int): [Country] }`)
	if err != nil {
		fmt.Println(err)
		return
	}
	var v validate.Validator
	var doc syntax.Document
	for _, text := range []string{
		`{ country { name } }`,
		`query Near { country(code: "DE") { neighbours(first: 3) { name } } }`,
	} {
		if err := syntax.Parse(&doc, []byte(text), syntax.Limits{Tokens: 1000, Depth: 10}); err != nil {
			fmt.Println(err)
			continue
		}
		if errs := v.Check(s, &doc, validate.Options{}); len(errs) > 0 {
			fmt.Println(errs[0], errs[0].Locations[0])
			continue
		}
		operation, _ := validate.Select(&doc, "")
		facts, err := v.Facts(s, &doc, operation, validate.Options{})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(facts.Name, "depth", facts.Depth, "cost", facts.Cost.At(nil))
		for _, id := range facts.Fields {
			fmt.Println(s.Types[s.Fields[id].Owner].Name, s.Fields[id].Name)
		}
	}
	// Output:
	// Field "country" argument "code" of type "ID!" is required, but it was not provided. {1 3}
	// Near depth 3 cost 5
	// Query country
	// Country neighbours
	// Country name
}
