package sample

import (
	"slices"
	"strings"
)

// country is one row of the data; lists hold codes.
type country struct {
	code, name, capital, continent string
	population                     float64 // millions
	languages, neighbours          string
}

// codes is a name by code, in order.
type codes []struct{ code, name string }

var continents = codes{
	{"AF", "Africa"}, {"AS", "Asia"}, {"EU", "Europe"}, {"NA", "North America"}, {"OC", "Oceania"}, {"SA", "South America"},
}

var languages = codes{
	{"ar", "Arabic"},
	{"de", "German"},
	{"en", "English"},
	{"es", "Spanish"},
	{"fr", "French"},
	{"hi", "Hindi"},
	{"it", "Italian"},
	{"ja", "Japanese"},
	{"mi", "Māori"},
	{"pt", "Portuguese"},
	{"rm", "Romansh"},
	{"sw", "Swahili"},
}

var countries = []country{
	{"AR", "Argentina", "Buenos Aires", "SA", 46.2, "es", "BR"},
	{"AT", "Austria", "Vienna", "EU", 9.1, "de", "CH DE IT"},
	{"AU", "Australia", "Canberra", "OC", 26.6, "en", ""},
	{"BR", "Brazil", "Brasília", "SA", 203.1, "pt", "AR"},
	{"CA", "Canada", "Ottawa", "NA", 40.1, "en fr", "US"},
	{"CH", "Switzerland", "Bern", "EU", 8.9, "de fr it rm", "AT DE FR IT"},
	{"DE", "Germany", "Berlin", "EU", 84.5, "de", "AT CH FR"},
	{"EG", "Egypt", "Cairo", "AF", 105.9, "ar", ""},
	{"FR", "France", "Paris", "EU", 68.2, "fr", "CH DE IT"},
	{"IN", "India", "New Delhi", "AS", 1428.6, "en hi", ""},
	{"IT", "Italy", "Rome", "EU", 58.9, "it", "AT CH FR"},
	{"JP", "Japan", "Tokyo", "AS", 124.4, "ja", ""},
	{"KE", "Kenya", "Nairobi", "AF", 51.5, "en sw", "TZ"},
	{"MX", "Mexico", "Mexico City", "NA", 129.7, "es", "US"},
	{"NZ", "New Zealand", "Wellington", "OC", 5.2, "en mi", ""},
	{"TZ", "Tanzania", "Dodoma", "AF", 61.7, "en sw", "KE"},
	{"US", "United States", "Washington, D.C.", "NA", 334.9, "en", "CA MX"},
}

// newWorld returns the query's own fields.
func newWorld() object {
	return members("Query", map[string]func(arguments) any{
		"continents": func(arguments) any { return each(continents, func(c string) bool { return true }, continentOf) },
		"continent":  func(args arguments) any { return one(args, continents, continentOf) },
		"languages":  func(arguments) any { return each(languages, func(c string) bool { return true }, languageOf) },
		"country": func(args arguments) any {
			code, _ := args.text("code")
			return found(func(c *country) bool { return c.code == strings.ToUpper(code) })
		},
		"countries": func(args arguments) any {
			within, only := args.text("continent")
			all := where(func(c *country) bool { return !only || c.continent == strings.ToUpper(within) })
			if first, given := args["first"].(float64); given {
				all = all[:min(len(all), max(int(first), 0))]
			}
			return all
		},
	})
}

// each makes objects of the codes that are wanted.
func each(from codes, wanted func(code string) bool, make func(code, name string) object) []any {
	all := []any{}
	for _, c := range from {
		if wanted(c.code) {
			all = append(all, make(c.code, c.name))
		}
	}
	return all
}

// one makes the object of the argument "code", or null.
func one(args arguments, from codes, make func(code, name string) object) any {
	code, _ := args.text("code")
	all := each(from, func(c string) bool { return strings.EqualFold(c, code) }, make)
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func where(wanted func(*country) bool) []any {
	all := []any{}
	for i := range countries {
		if wanted(&countries[i]) {
			all = append(all, countryOf(&countries[i]))
		}
	}
	return all
}

func found(wanted func(*country) bool) any {
	if all := where(wanted); len(all) > 0 {
		return all[0]
	}
	return nil
}

func continentOf(code, name string) object {
	return members("Continent", map[string]func(arguments) any{
		"code": constant(code), "name": constant(name),
		"countries": func(arguments) any { return where(func(c *country) bool { return c.continent == code }) },
	})
}

func languageOf(code, name string) object {
	return members("Language", map[string]func(arguments) any{
		"code": constant(code), "name": constant(name),
		"countries": func(arguments) any { return where(func(c *country) bool { return listed(c.languages, code) }) },
	})
}

func countryOf(c *country) object {
	return members("Country", map[string]func(arguments) any{
		"code": constant(c.code), "name": constant(c.name), "capital": constant(c.capital), "population": constant(c.population),
		"continent": func(arguments) any {
			return each(continents, func(code string) bool { return code == c.continent }, continentOf)[0]
		},
		"languages": func(arguments) any {
			return each(languages, func(code string) bool { return listed(c.languages, code) }, languageOf)
		},
		"neighbours": func(arguments) any { return where(func(n *country) bool { return listed(c.neighbours, n.code) }) },
	})
}

// listed tells whether a list of codes has one.
func listed(list, code string) bool { return slices.Contains(strings.Fields(list), code) }
