package classicimport

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/declarative"
	"github.com/sluicegate/sluice/internal/definition"
)

const (
	hash  = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	plain = `{"name":"a","use_keyless":true,"proxy":{"listen_path":"/a/","target_url":"http://127.0.0.1:1"}}`
)

func taken(t *testing.T, r *Report, kind declarative.Kind, name string) *Entry {
	t.Helper()
	i := slices.IndexFunc(r.Entries, func(e *Entry) bool { return e.Kind == kind && e.Name == name })
	if i < 0 {
		t.Fatalf("no %s %s in\n%s", kind, name, r.Text())
	}
	return r.Entries[i]
}

func TestAnExampleFolderIsTakenOver(t *testing.T) {
	found, err := Find("../cli/testdata/examples/classic")
	if err != nil {
		t.Fatal(err)
	}
	report := Convert(found, Options{Renames: Renames{"acme": "svc"}})
	if report.Refused() != 0 {
		t.Fatalf("refused:\n%s", report.Text())
	}
	set, err := report.Set()
	if err != nil || set.Count(declarative.API) != 2 || set.Count(declarative.Policy) != 2 || set.Count(declarative.Key) != 2 {
		t.Fatalf("%+v, %v", set, err)
	}
	orders := taken(t, report, declarative.API, "orders")
	if text := string(orders.body()); !strings.Contains(text, "$svc_context.remote_addr") || strings.Contains(text, "acme") || strings.Contains(text, "org_id") {
		t.Errorf("%s", text)
	}
	if !slices.Equal(orders.Unknown, []string{"x-svc-owner"}) {
		t.Errorf("unknown: %q", orders.Unknown)
	}
	gold, err := definition.ParsePolicy(taken(t, report, declarative.Policy, "gold").body())
	if err != nil {
		t.Fatal(err)
	}
	if l := gold.AccessRights["orders"].Limit; l.Rate != -1 || l.QuotaMax != -1 || l.MaxQueryDepth != 4 || l.ThrottleInterval != 0 {
		t.Errorf("an entry with a depth alone has become %+v", l)
	}
	silver, err := definition.ParsePolicy(taken(t, report, declarative.Policy, "silver").body())
	if err != nil || silver.AccessRights["orders"] == nil || silver.AccessRights["orders"].Limit != nil {
		t.Errorf("limits without per_api stay: %+v, %v", silver, err)
	}
	bob, err := definition.ParseSession(taken(t, report, declarative.Key, "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9").body())
	if err != nil || bob.AccessRights["orders"].Limit.QuotaMax != -1 || bob.AccessRights["orders"].Limit.Rate != 2 {
		t.Errorf("%+v, %v", bob, err)
	}
}

func TestWhatIsRefusedIsNamedWithItsReason(t *testing.T) {
	report := Convert([]Source{
		{declarative.API, "a", "a.json", json.RawMessage(plain)},
		{declarative.API, "b", "b.json", json.RawMessage(plain)},
		{declarative.API, "bad", "bad.json", json.RawMessage(`{"proxy":{"listen_path":"x","target_url":"ftp://x"}}`)},
		{declarative.API, "cut", "cut.json", json.RawMessage(`{"proxy":`)},
		{declarative.Policy, "p", "p.json", json.RawMessage(`{"access_rights":{"bad":{}}}`)},
		{declarative.Policy, "q", "q.json", json.RawMessage(`{"access_rights":{"elsewhere":{}}}`)},
		{declarative.Key, hash, "keys", json.RawMessage(`{"apply_policies":["p"]}`)},
		{declarative.Key, "a-key-that-is-a-secret", "keys", json.RawMessage(`{}`)},
	}, Options{})
	report.Settle(new(declarative.Set))
	if set, err := report.Set(); err != nil || len(set.Objects) != 1 {
		t.Errorf("%d taken over, %v:\n%s", len(set.Objects), err, report.Text())
	}
	text := report.Text()
	for _, want := range []string{"API b: REFUSED", "claimed in a.json", "proxy.listen_path: must", "proxy.target_url: ", "no JSON", `access_rights["bad"]: names an API that is refused`, "neither here nor on the server", `the policy "p", which is refused`, "key in clear"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "that-is-a-secret") {
		t.Errorf("a key is shown:\n%s", text)
	}
}

func TestFilesAreToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []declarative.Kind
	}{
		"definition":   {plain, []declarative.Kind{declarative.API}},
		"list":         {"[" + plain + "," + plain + "]", []declarative.Kind{declarative.API, declarative.API}},
		"wrapped":      {`{"apis":[{"api_definition":` + plain + `}]}`, []declarative.Kind{declarative.API}},
		"policies":     {`{"gold":{"rate":1},"silver":{}}`, []declarative.Kind{declarative.Policy, declarative.Policy}},
		"a policy":     {`{"id":"gold","access_rights":{}}`, []declarative.Kind{declarative.Policy}},
		"listed":       {`{"Data":[{"_id":"gold","access_rights":{}}],"Pages":1}`, []declarative.Kind{declarative.Policy}},
		"keys":         {`{"` + hash + `":{"rate":1}}`, []declarative.Kind{declarative.Key}},
		"odd ids":      {`{"` + hash + `":{"rate":1,"name":"gold"}}`, []declarative.Kind{declarative.Policy}},
		"no object":    {`5`, []declarative.Kind{declarative.API}},
		"broken":       {`{"a`, []declarative.Kind{declarative.API}},
		"empty":        {`[]`, nil},
		"not policies": {`{"a":5}`, []declarative.Kind{declarative.API}},
	} {
		var got []declarative.Kind
		for _, s := range Parse("x.json", []byte(c.text)) {
			got = append(got, s.Kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if _, err := Find(t.TempDir()); !errors.Is(err, ErrNothing) {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestNamesAreRewrittenWhereTheyStand(t *testing.T) {
	r := Renames{"acme": "svc"}
	for from, want := range map[string]string{
		"$acme_context.path": "$svc_context.path", "a $acme_meta.x b": "a $svc_meta.x b", "X-Acme-Authorization": "X-Svc-Authorization",
		"x-acme-streaming": "x-svc-streaming", "acme": "acme", "https://acme.example/x-acme-y": "https://acme.example/x-acme-y",
	} {
		if got := r.text(from); got != want {
			t.Errorf("%q became %q, want %q", from, got, want)
		}
	}
	if (Renames{"Ac me": "svc"}).Check() == nil || (Renames{"": "svc"}).Check() == nil || r.Check() != nil {
		t.Error("mappings are not checked")
	}
}

type scripted map[string]string

func (s scripted) Call(_ context.Context, method, path string, _ any) ([]byte, error) {
	if answer, ok := s[method+" "+path]; ok {
		return []byte(answer), nil
	}
	return nil, errors.New(method + " " + path + " is not there")
}

func TestARunningGatewayIsAsked(t *testing.T) {
	s := scripted{
		"GET /acme/apis": "[" + plain + "]", "GET /acme/policies": `[{"_id":"gold","access_rights":{}}]`,
		"GET /acme/keys": `{"keys":["` + hash + `","in-clear"]}`, "GET /acme/keys/" + hash + "?hashed=true": `{"apply_policies":["gold"]}`,
	}
	view := 0
	found, err := Ask(t.Context(), s, "/acme", func(int, int) { view++ })
	if err != nil || len(found) != 4 || view != 2 {
		t.Fatalf("%d, told %d times, %v", len(found), view, err)
	}
	delete(s, "GET /acme/policies")
	if _, err := Ask(t.Context(), s, "/acme", nil); err == nil || !strings.Contains(err.Error(), "/acme/policies") {
		t.Errorf("%v", err)
	}
	s["GET /acme/policies"] = `{}`
	if _, err := Ask(t.Context(), s, "/acme", nil); err == nil || !strings.Contains(err.Error(), "JSON array") {
		t.Errorf("%v", err)
	}
}

func FuzzNothingThatIsFoundEndsTheProgram(f *testing.F) {
	f.Add([]byte(plain))
	f.Add([]byte(`{"gold":{"access_rights":{"a":{"limit":{"rate":1}}},"partitions":{"per_api":true}}}`))
	f.Add([]byte(`{"` + hash + `":{"access_rights":null,"quota_remaining":1e999}}`))
	f.Add([]byte(`[null,5,{"apis":[{"api_definition":{"proxy":[]}}]},{"Data":[]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		report := Convert(Parse("x.json", data), Options{Renames: Renames{"acme": "svc"}})
		report.Settle(new(declarative.Set))
		if set, err := report.Set(); err != nil {
			t.Errorf("%v in %d", err, len(set.Objects))
		}
		_ = report.Text()
	})
}

// TestDepthIsCountedAsClassicPoliciesDo: from 0, unless a definition or the caller says
// something else.
func TestDepthIsCountedAsClassicPoliciesDo(t *testing.T) {
	graph := func(member string) json.RawMessage {
		return json.RawMessage(strings.Replace(plain, "{", `{"graphql":{"enabled":true,"execution_mode":"proxyOnly",`+member+`"schema":"type Query { a: Int }"},`, 1))
	}
	for _, c := range []struct {
		body json.RawMessage
		base int
		want string
		said bool
	}{
		{graph(""), 0, `"depth_base":0`, true},
		{graph(""), 1, `"depth_base":1`, true},
		{graph(`"depth_base":1,`), 0, `"depth_base":1`, false},
		{json.RawMessage(plain), 0, "", false},
	} {
		report := Convert([]Source{{declarative.API, "a", "a.json", c.body}}, Options{})
		report.SetDepthBase(c.base)
		a := taken(t, report, declarative.API, "a")
		if text := string(a.body()); !strings.Contains(text, c.want) || c.want == "" && strings.Contains(text, "depth_base") {
			t.Errorf("%s with %d: %s", c.body, c.base, text)
		}
		if said := strings.Contains(report.Text(), "graphql.depth_base is set"); said != c.said {
			t.Errorf("%s with %d: the report says\n%s", c.body, c.base, report.Text())
		}
	}
}
