package request

import (
	"net/url"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

func TestWeights(t *testing.T) {
	for text, want := range map[string]int{
		"1": 1000, "0": 0, "0.5": 500, "0.05": 50, "0.001": 1, "0.0005": 0, "1.000": 1000, "1.9": 1000, "": 1000, "x": 1000, "0.": 0, "2": 1000, "0.5x": 500,
	} {
		if got := thousandths([]byte(text)); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestParametersAreEscapedForEveryReader(t *testing.T) {
	text := "{ a(b: \"é &=+%;\\u0000\") }\n#~-._"
	q := AppendParameter(AppendParameter(nil, "query", []byte(text)), "operationName", []byte("A b"))
	read, err := url.ParseQuery(string(q))
	if err != nil || read.Get("query") != text || read.Get("operationName") != "A b" || len(read) != 2 {
		t.Errorf("%s is read as %v, %v", q, read, err)
	}
	var d Decoder
	r, refused := d.URL(q)
	if refused != nil || string(r.Query) != text || string(r.Operation) != "A b" {
		t.Errorf("%+v, %v", r, refused)
	}
}

func TestErrorsAreWrittenAsJSON(t *testing.T) {
	got := string(Body(
		&syntax.Error{Message: "a \"b\"\n\x01é\xff", Locations: []syntax.Location{{Line: 1, Column: 2}, {Line: 30, Column: 4}}},
		&syntax.Error{Message: "c"},
	))
	const want = `{"errors":[{"message":"a \"b\"\n\u0001é` + "\ufffd" + `","locations":[{"line":1,"column":2},{"line":30,"column":4}]},{"message":"c"}]}`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// FuzzURL holds the reading of URLs against that of the standard library.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"query={a}", "a=b&%71uery=%7Ba%7D&operationName=x", "query=a+b&variables={}&extensions=null", "query=%e9", "q;uery=1&query=a", "Query=a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, params string) {
		var d Decoder
		r, refused := d.URL([]byte(params))
		others, err := url.ParseQuery(string(d.AppendOthers(nil, []byte(params))))
		for _, m := range known {
			if err == nil && others.Has(names[m]) {
				t.Errorf("%q: %s is left over", params, names[m])
			}
		}
		if refused != nil || r.Query == nil {
			return
		}
		read, err := url.ParseQuery(params)
		if err != nil {
			return // it may drop what another reader keeps
		}
		if read.Get("query") != string(r.Query) || read.Get("operationName") != string(r.Operation) || len(read["query"]) != 1 {
			t.Errorf("%q is read as %v", params, read)
		}
	})
}
