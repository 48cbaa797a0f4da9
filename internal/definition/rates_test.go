package definition

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func readRates(text string) ([]PathRate, string) {
	v, faults := readExtended(text)
	if len(faults) > 0 {
		return nil, joined(faults)
	}
	return v.RateLimits(), ""
}

func TestRatesThatLimitAreReadInOrder(t *testing.T) {
	got, said := readRates(`{"rate_limit": [
		{"path": "/a/{id}", "method": "get", "rate": 5, "per": 1},
		{"path": "/b", "rate": 0, "per": 1}, {"path": "/c", "rate": 1, "per": 1, "disabled": true},
		{"path": "/d", "rate": 2, "per": 0.5, "ignore_case": true}], "other": 5}`)
	want := []PathRate{{PathMatch: PathMatch{Path: "/a/{id}", Method: "GET"}, Rate: 5, Per: 1}, {PathMatch: PathMatch{Path: "/d", IgnoreCase: true}, Rate: 2, Per: 0.5}}
	if said != "" || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %s", got, said)
	}
	for _, nothing := range []string{``, `{}`, `null`, `{"rate_limit": null}`, `{"rate_limit": []}`} {
		if got, said := readRates(nothing); got != nil || said != "" {
			t.Errorf("%s: %v, %s", nothing, got, said)
		}
	}
}

func TestFaultsOfRatesHaveTheirPath(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"rate_limit": {}}`, "rate_limit: must be an array, not an object"},
		{`{"rate_limit": [5]}`, "rate_limit[0]: must be an object, not a number"},
		{`{"rate_limit": [{"path": "", "rate": 1, "per": 1}]}`, `rate_limit[0].path: is empty`},
		{`{"rate_limit": [{"path": "/a", "rate": 1, "per": 1}, {"path": "/a(", "rate": 1, "per": 1}]}`, "rate_limit[1].path: "},
		{`{"rate_limit": [{"path": "/a", "rate": 1.5, "per": 1}]}`, "rate_limit[0].rate: must be a whole number"},
		{`{"rate_limit": [{"path": "/a", "rate": 1, "per": 0.0001}]}`, "rate_limit[0].per: must be a whole number of milliseconds"},
		{`{"rate_limit": [{"path": "/a", "method": "GET POST", "rate": 1, "per": 1}]}`, "rate_limit[0].method: must be"},
		{`{"rate_limit": [{"path": "/a", "rate": "5", "per": 1}]}`, "rate_limit[0].rate: must be a number"},
	} {
		if got, said := readRates(c.text); !strings.HasPrefix(said, c.want) {
			t.Errorf("%s: %q, want %q (%v)", c.text, said, c.want, got)
		}
	}
}

func FuzzRates(f *testing.F) {
	f.Add(`{"rate_limit": [{"path": "/a", "rate": 5, "per": 1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		all, _ := readRates(text)
		for _, one := range all {
			if !limits(one.Rate, one.Per) || one.Path == "" || len(rateFaults(one.Rate, one.Per)) > 0 {
				t.Errorf("%+v", one)
			}
		}
	})
}
