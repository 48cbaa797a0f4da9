package graph

import (
	"testing"

	"github.com/wundergraph/astjson"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// What is passed on without being parsed is what the parser takes for the entities that
// were asked for.
func FuzzCleanResponses(f *testing.F) {
	for _, text := range []string{
		`{"data":{"_entities":[{"__typename":"User","id":1},null]}}`, `{"data":{"_entities":[null,null]},"errors":[]}`, `{"data":{"_entities":[{"__typename":"Post"},null]}}`,
		`{"data":null}`, `{"d\u0061ta":{"_entities":[null,null]}}`, `{"data":{"_entities":[null,null],"_entities":[]}}`, `{"data":{"_entities":[null,null]}}x`, `[]`, ``,
		`{"data":{"_entities":[{"__typename":"Post","__typename":"User"},null]}}`,
	} {
		f.Add([]byte(text))
	}
	asked := [][]byte{[]byte(`{"__typename":"User","id":1}`), []byte(`{"org":{"__typename":"Org"},"__typename":"User"}`)}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !areClean(body, asked) {
			return
		}
		parsed, err := astjson.ParseBytes(body)
		if err != nil {
			t.Fatal(err)
		}
		list := parsed.GetArray("data", "_entities")
		if len(list) != len(asked) || len(parsed.GetArray("errors")) > 0 {
			t.Fatalf("%s", body)
		}
		for _, one := range list {
			if one.Type() != astjson.TypeNull && (one.Type() != astjson.TypeObject || string(one.GetStringBytes(schema.Typename)) != "User") {
				t.Errorf("%s: %s", body, one)
			}
		}
	})
}

func TestWhatIsSent(t *testing.T) {
	for _, c := range []struct{ input, want string }{
		{`{"method":"POST","url":"http://x/","body":{"query":"{a}","variables":{"a":null}}}`, `{"query":"{a}","variables":{"a":null}}`},
		{`{"body":{"query":"{a}","variables":{"a":null,"b":null,"c":1}},"undefined":["a","c"]}`, `{"query":"{a}","variables":{"b":null,"c":1}}`},
		{`{"body":{"query":"{a}"},"undefined":["a"]}`, `{"query":"{a}"}`},
	} {
		if got := string(sentOf([]byte(c.input))); got != c.want {
			t.Errorf("%s: got %s", c.input, got)
		}
	}
}
