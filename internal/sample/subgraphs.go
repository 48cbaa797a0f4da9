package sample

import (
	_ "embed" // the schema and the data
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

//go:embed currencies.graphql
var currenciesSDL string

//go:embed currencies.json
var currencies []byte

// CountriesSDL and CurrenciesSDL are the schemas of the subgraphs, with the directives of
// federation. The second extends the countries of the first by their currency.
var (
	CountriesSDL  = strings.Replace(Schema, "type Country {", `type Country @key(fields: "code") {`, 1)
	CurrenciesSDL = currenciesSDL
)

// NewSubgraphs returns the countries and their currencies as two subgraphs.
func NewSubgraphs() (ofCountries, ofCurrencies *Server, err error) {
	root, all, err := world()
	if err != nil {
		return nil, nil, err
	}
	if ofCountries, err = subgraph(CountriesSDL, root, all); err != nil {
		return nil, nil, err
	}
	money := object{}
	if err := json.Unmarshal(currencies, &money); err != nil {
		return nil, nil, err
	}
	var users []any
	for _, c := range money["currencies"].([]any) {
		codes := c.(object)["countries"].([]any)
		for i := range codes {
			codes[i] = object{"code": codes[i], "currency": c}
		}
		users = append(users, codes...)
	}
	ofCurrencies, err = subgraph(CurrenciesSDL, money, users)
	return ofCountries, ofCurrencies, err
}

// subgraph returns a server that also answers the fields of federation. Its entities are
// countries.
func subgraph(sdl string, root object, entities []any) (*Server, error) {
	served, problems := compose.Served(compose.Subgraph{Name: "sample", SDL: sdl})
	if len(problems) > 0 {
		return nil, fmt.Errorf("%v", problems)
	}
	s, err := schema.Load(served)
	if err != nil {
		return nil, err
	}
	fields := object{"_service": object{"sdl": sdl}, "_entities": resolver(func(args object) any {
		asked, _ := args["representations"].([]any)
		found := make([]any, len(asked))
		for i := range asked {
			one, _ := asked[i].(object)
			if one["__typename"] == "Country" {
				found[i] = find(entities, "code", one["code"])
			}
		}
		return found
	})}
	maps.Copy(fields, root)
	return &Server{schema: s, root: fields}, nil
}

//go:embed dialling.json
var dialling []byte

// DiallingCode returns what a REST service says of a country, nil if it does not know it.
func DiallingCode(country string) []byte {
	var all map[string]string
	if json.Unmarshal(dialling, &all) != nil || all[country] == "" {
		return nil
	}
	answer, _ := json.Marshal(object{"country": country, "prefix": all[country]})
	return answer
}
