package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

const graphqlMember = `"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { a: Int b: Int }"},`

// counting is a gateway API with the GraphQL API "shop", whose fields have been
// read, and "plain", which is none.
func counting(t *testing.T) *bench {
	t.Helper()
	u := usage.NewOperations()
	b := onFiles(t, func(d *Deps) { d.Usage = u })
	b.want("POST", "/svc/apis", definitionOf("shop", graphqlMember), 200, done("shop", "added"))
	b.want("POST", "/svc/apis", definitionOf("quiet", graphqlMember), 200, done("quiet", "added"))
	b.want("POST", "/svc/apis", definitionOf("plain", ""), 200, done("plain", "added"))
	b.reload()
	s, err := schema.Load("type Query { a: Int b: Int }")
	if err != nil {
		t.Fatal(err)
	}
	field := func(name string) []schema.FieldID {
		id, _ := s.FieldNamed(s.Query, []byte(name))
		return []schema.FieldID{id}
	}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	a := u.Open("shop")
	a.Count(usage.Operation{Facts: &validate.Facts{Fields: field("a")}, Schema: s, Key: "0123456789ab", At: at}, usage.OK)
	for range 2 {
		a.Count(usage.Operation{Facts: &validate.Facts{Fields: field("a")}, Schema: s, At: at}, usage.OK)
	}
	a.Count(usage.Operation{Facts: &validate.Facts{Fields: field("b")}, Schema: s, Key: "ba9876543210", At: at}, usage.OK)
	return b
}

func TestFieldUsageIsShown(t *testing.T) {
	b := counting(t)
	got := b.call("GET", "/svc/graphql/usage/shop", "")
	report := decoded[usage.FieldReport](t, got)
	const last = `"last_used":"2026-11-21T12:00:00Z"`
	want := `"fields":[{"type":"Query","field":"a","count":3,` + last + `,"keys":[{"key":"","count":2,` + last + `},{"key":"0123456789ab","count":1,` + last + `}],"keys_total":2},` +
		`{"type":"Query","field":"b","count":1,` + last + `,"keys":[{"key":"ba9876543210","count":1,` + last + `}],"keys_total":1}],"total":2,"dropped":0}`
	if got.status != 200 || !strings.HasSuffix(got.body, want) || report.API != "shop" || report.Since.IsZero() {
		t.Errorf("%d %s", got.status, got.body)
	}
	quiet := decoded[usage.FieldReport](t, b.call("GET", "/svc/graphql/usage/quiet", ""))
	if quiet.API != "quiet" || quiet.Fields == nil || quiet.Total != 0 {
		t.Errorf("an API without traffic: %+v", quiet)
	}
}

func TestFieldUsageIsFilteredAndPaged(t *testing.T) {
	b := counting(t)
	for query, want := range map[string]string{
		"":                        "a: 2=; 1=0123456789ab; b: 1=ba9876543210; of 2",
		"?type=Query&field=b":     "b: 1=ba9876543210; of 1",
		"?type=User":              "of 0",
		"?key=0123456789ab":       "a: 1=0123456789ab; of 1",
		"?key=":                   "a: 2=; of 1",
		"?key=nobody":             "of 0",
		"?keys=1":                 "a: 2=; b: 1=ba9876543210; of 2",
		"?keys=0&page_size=1":     "a: of 2",
		"?keys=0&page_size=1&p=2": "b: of 2",
		"?p=1000000":              "of 2",
	} {
		report := decoded[usage.FieldReport](t, b.call("GET", "/svc/graphql/usage/shop"+query, ""))
		var got strings.Builder
		for _, f := range report.Fields {
			got.WriteString(f.Name + ": ")
			for _, k := range f.Keys {
				fmt.Fprintf(&got, "%d=%s; ", k.Count, k.Key)
			}
		}
		fmt.Fprintf(&got, "of %d", report.Total)
		if got.String() != want {
			t.Errorf("%q: %s, want %s", query, got.String(), want)
		}
	}
}

func TestFieldUsageIsRefused(t *testing.T) {
	b := counting(t)
	number := func(name, want, got string) string {
		return failed(`Query parameter \"` + name + `\" must be a whole number in ` + want + `, not \"` + got + `\"`)
	}
	b.want("GET", "/svc/graphql/usage/none", "", 404, failed("API not found"))
	b.want("GET", "/svc/graphql/usage/plain", "", 404, failed("The API is no GraphQL API"))
	b.want("GET", "/svc/graphql/usage/shop?p=0", "", 400, number("p", "1…1000000", "0"))
	b.want("GET", "/svc/graphql/usage/shop?page_size=501", "", 400, number("page_size", "1…500", "501"))
	b.want("GET", "/svc/graphql/usage/shop?keys=many", "", 400, number("keys", "0…1000", "many"))
	b.want("GET", "/svc/graphql/usage/shop?typ=Query", "", 400, failed(`Unknown query parameter \"typ\"; this call takes type, field, key, keys, p, page_size`))
	b.want("POST", "/svc/graphql/usage/shop", "", 405, failed("Method not allowed"))
	if got := b.send("GET", "/svc/graphql/usage/shop", "", nil); got.status != 403 || strings.Contains(got.body, "fields") {
		t.Errorf("without the secret: %d %s", got.status, got.body)
	}
	off := onFiles(t)
	off.want("POST", "/svc/apis", definitionOf("shop", graphqlMember), 200, done("shop", "added"))
	off.reload()
	off.want("GET", "/svc/graphql/usage/shop", "", 404, failed("This gateway does not count which fields are read"))
}
