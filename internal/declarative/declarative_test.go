package declarative

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	keyHash = "3f5ac07e93d9e3a1b7c42f3d5b6a89f1c0d2e4f60718293a4b5c6d7e8f901234"
	apiText = "kind: API\nmetadata: {name: orders, labels: {team: a}}\nspec:\n  proxy: {listen_path: /orders/, target_url: \"http://a\"}\n  use_keyless: true\n"
	goldDoc = "kind: Policy\nmetadata: {name: gold}\nspec: {rate: 5, per: 1.5, tags: [b, a], access_rights: {orders: {}}}\n"
)

func read(t *testing.T, text string) *Set {
	t.Helper()
	objects, wrong := Parse("f.yaml", []byte(text), nothing)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	set := new(Set)
	if err := set.Add(objects...); err != nil {
		t.Fatal(err)
	}
	return set
}

func plan(t *testing.T, have, want *Set, o Options) *Plan {
	t.Helper()
	p, err := NewPlan(have, want, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhatMeansTheSameIsNoDifference(t *testing.T) {
	for name, c := range map[string]struct{ one, other string }{
		"defaults":      {apiText, strings.Replace(apiText, "use_keyless: true", "use_keyless: true\n  active: true\n  domain: \"\"\n  tags: []\n  use_basic_auth: false", 1)},
		"order":         {goldDoc, "kind: Policy\nmetadata: {name: gold}\nspec: {access_rights: {orders: {versions: [], api_id: orders}}, tags: [a, b], per: 1.50, rate: 5}\n"},
		"rights listed": {goldDoc, "kind: Policy\nmetadata: {name: gold}\nspec: {rate: 5, per: 1.5, tags: [a, b], access_rights_array: [{api_id: orders}]}\n"},
		"JSON":          {goldDoc, `{"kind":"Policy","metadata":{"name":"gold"},"spec":{"id":"gold","rate":5,"per":1.5,"tags":["a","b"],"access_rights":{"orders":{}}}}`},
		"whose it is":   {apiText, strings.Replace(apiText, "spec:", "spec:\n  org_id: other", 1)},
	} {
		if p := plan(t, read(t, c.one), read(t, c.other), Options{Prune: true}); len(p.Changes) > 0 || p.Unchanged != 1 {
			t.Errorf("%s: %s", name, p.Text())
		}
	}
}

func TestWhatDiffersIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ one, other, want string }{
		"out of service": {apiText, apiText + "  active: false\n", "active: nothing -> false"},
		"an open right":  {goldDoc, strings.Replace(goldDoc, "{orders: {}}", "{orders: {}, users: {}}", 1), "access_rights.users: nothing -> {"},
		"a number":       {goldDoc, strings.Replace(goldDoc, "rate: 5", "rate: 6", 1), "rate: 5 -> 6"},
		"labels":         {apiText, strings.Replace(apiText, "team: a", "team: b", 1), `x-labels.team: "a" -> "b"`},
		"free data":      {goldDoc, strings.Replace(goldDoc, "rate: 5", "rate: 5, meta_data: {x: \"\"}", 1), `meta_data: nothing -> {"x":""}`},
	} {
		p := plan(t, read(t, c.one), read(t, c.other), Options{})
		if !strings.Contains(p.Text(), c.want) || p.Count(Update) != 1 {
			t.Errorf("%s: lacks %q:\n%s", name, c.want, p.Text())
		}
	}
}

func TestUnknownMembersAreNamed(t *testing.T) {
	set := read(t, apiText+"  proxy_typo: 1\n  enable_ip_whitelistng: true\n---\n"+strings.Replace(goldDoc, "rate: 5", "quota_mx: 5", 1))
	const noEffect = "is not known to this release and has no effect"
	want := []string{
		"f.yaml: spec.enable_ip_whitelistng: " + noEffect + "; did you mean enable_ip_whitelisting?", "f.yaml: spec.proxy_typo: " + noEffect,
		"f.yaml: document 2: spec.quota_mx: " + noEffect + "; did you mean quota_max?",
	}
	if got := set.Unknown(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a server stored before may no longer be accepted: it can still be compared and
// replaced.
func TestAnObjectThatIsNoLongerAcceptedCanBeReplaced(t *testing.T) {
	stored := &Set{Objects: []*Object{{Kind: API, Name: "orders", Body: json.RawMessage(`{"api_id":"orders","use_openid":true,"use_keyless":true,"proxy":{"listen_path":"/orders/","target_url":"http://a"}}`)}}}
	if p := plan(t, stored, read(t, apiText), Options{}); !strings.Contains(p.Text(), "use_openid: true -> nothing") {
		t.Errorf("%s", p.Text())
	}
}

func TestASchemaThatIsLeftOutStays(t *testing.T) {
	without := "kind: API\nmetadata: {name: q}\nspec: {use_keyless: true, proxy: {listen_path: /q/, target_url: \"http://a\"}, graphql: {enabled: true, execution_mode: proxyOnly}}\n"
	with := strings.Replace(without, "proxyOnly", "proxyOnly, schema: \"type Query { a: Int }\"", 1)
	if p := plan(t, read(t, with), read(t, without), Options{}); len(p.Changes) > 0 {
		t.Errorf("%s", p.Text())
	}
}

func TestSchemasThatTheAdminComposedStay(t *testing.T) {
	tree := func(text string) (v any) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := tree(`{"graphql":{"schema":"s","last_schema_update":"u","supergraph":{"merged_sdl":"s","updated_at":"u","subgraphs":[
		{"name":"a","api_id":"a","sdl":"a"},{"name":"b","api_id":"b","sdl":"b"},{"name":"c","sdl":"c"}]}}}`)
	after := tree(`{"graphql":{"supergraph":{"subgraphs":[{"name":"a","api_id":"a"},{"name":"b","api_id":"other"},{"name":"c","sdl":"new"},{"name":"d","api_id":"d"}]}}}`)
	keepSchema(before, after)
	want := tree(`{"graphql":{"schema":"s","last_schema_update":"u","supergraph":{"merged_sdl":"s","updated_at":"u","subgraphs":[
		{"name":"a","api_id":"a","sdl":"a"},{"name":"b","api_id":"other"},{"name":"c","sdl":"new"},{"name":"d","api_id":"d"}]}}}`)
	if !reflect.DeepEqual(after, want) {
		t.Errorf("got %v, want %v", after, want)
	}
}

func TestASupergraphDiffersWithItsSubgraphs(t *testing.T) {
	const subgraph = "kind: API\nmetadata: {name: users}\nspec: {use_keyless: true, proxy: {listen_path: /u/, target_url: 'http://up.example'}, graphql: {enabled: true, execution_mode: subgraph, subgraph: {sdl: 'type Query { a: Int }'}}}\n---\n"
	const supergraph = "kind: API\nmetadata: {name: shop}\nspec: {use_keyless: true, proxy: {listen_path: /s/}, graphql: {enabled: true, execution_mode: supergraph, supergraph: {subgraphs: [{name: users, api_id: users}]}}}\n"
	composed := strings.Replace(supergraph, "api_id: users", "api_id: users, url: 'svc://users', sdl: 'type Query { a: Int }'", 1)
	for files, updates := range map[string]int{
		subgraph + supergraph: 0,
		supergraph:            0,
		strings.Replace(subgraph, "a: Int", "a: Int b: Int", 1) + supergraph: 2,
	} {
		if p := plan(t, read(t, subgraph+composed), read(t, files), Options{}); p.Count(Update) != updates {
			t.Errorf("%s\n%s", files, p.Text())
		}
	}
}

func TestOnlyLabelledObjectsArePruned(t *testing.T) {
	have := read(t, apiText+"---\n"+goldDoc+"---\nkind: Key\nmetadata: {name: ann}\nhash: "+keyHash+"\nspec: {apply_policies: [gold]}\n")
	if p := plan(t, have, read(t, "kind: Key\nmetadata: {name: bob}\ngenerate: true\nspec: {apply_policies: [gold]}\n"), Options{Prune: true}); p.Count(Delete) != 2 || p.Count(Create) != 1 {
		t.Errorf("%s", p.Text())
	}
	p := plan(t, have, new(Set), Options{Prune: true, Select: map[string]string{"team": "a"}})
	if b := p.Batch(); !slices.Equal(b.Delete.APIs, []string{"orders"}) || b.Delete.Policies != nil {
		t.Errorf("%s", p.Text())
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	set := read(t, apiText+"---\n"+goldDoc+"---\nkind: Key\nmetadata: {name: "+keyHash+"}\nhash: "+keyHash+"\nspec: {apply_policies: [gold], meta_data: {a: 0}}\n")
	var text []byte
	for _, o := range set.Objects {
		doc, _, err := o.Document(false)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(doc), "x-labels") || strings.Contains(string(doc), `"rate":0`) {
			t.Errorf("%s", doc)
		}
		text = append(append(text, doc...), '\n')
	}
	again, wrong := Parse("f.json", text, nothing)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if p := plan(t, set, &Set{Objects: again}, Options{Prune: true}); len(p.Changes) > 0 || p.Unchanged != 3 {
		t.Errorf("%s", p.Text())
	}
	dir := t.TempDir()
	if err := set.WriteClassic(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "apps", "orders.json")); err != nil {
		t.Error(err)
	}
	if name := (&Object{Kind: API, Name: "../A b"}).FileName(); name != filepath.Join("apis", "%2e.%2f%41%20b") {
		t.Errorf("%q", name)
	}
}

// admin is a Server whose configuration also changes concurrently.
type admin struct {
	t        *testing.T
	revision int64
	batches  []Batch
	stale    int // calls with an outdated revision
	keys     int
}

var errStale = errors.New("in the meantime")

func (a *admin) Call(_ context.Context, method, path string, body any) ([]byte, error) {
	switch path, _, _ := strings.Cut(path, "?"); method + " " + path {
	case "GET /api/config/revisions":
		return fmt.Appendf(nil, `{"revisions":[{"revision":%d}]}`, a.revision), nil
	case fmt.Sprintf("GET /api/config/revisions/%d", a.revision):
		return []byte(`{}`), nil
	case "GET /api/keys/detailed":
		return []byte(`{"pages":1,"keys":[{"key_hash":"` + keyHash + `","data":{"successor_of":"x"}}]}`), nil
	case "GET /api/config":
		return fmt.Appendf(nil, `{"revision":%d,"gateways":2,"up_to_date":%d,"behind":["b:8080"]}`, a.revision, min(a.keys, 2)), nil
	case "POST /api/config/apply":
		if a.stale > 0 {
			a.stale--
			a.revision++
			return nil, errStale
		}
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		var b Batch
		if err := json.Unmarshal(text, &b); err != nil {
			return nil, err
		}
		a.batches = append(a.batches, b)
		a.revision++
		return fmt.Appendf(nil, `{"revision":%d,"new_keys":[{"name":"bob","key":"raw","key_hash":"h"}]}`, a.revision), nil
	}
	a.t.Errorf("%s %s was called", method, path)
	return nil, errors.New("unknown")
}

func settings() *Settings {
	return &Settings{Expect: -1, Agree: func(*Plan) error { return nil }, Stale: func(err error) bool { return errors.Is(err, errStale) }}
}

func TestAPlanIsMadeAnewWhenOthersWereFaster(t *testing.T) {
	a := &admin{t: t, revision: 7, stale: 2}
	want := read(t, apiText+"---\nkind: Key\nmetadata: {name: bob}\ngenerate: true\nspec: {apply_policies: [gold]}\n")
	out, err := settings().Apply(t.Context(), a, want)
	if err != nil || out.Revision != 10 || len(a.batches) != 1 || *a.batches[0].Expect != 9 || len(out.Keys) != 1 || out.Keys[0].Key != "raw" {
		t.Fatalf("%+v, %v", out, err)
	}
	a.stale = 3
	if _, err := settings().Apply(t.Context(), a, want); !errors.Is(err, errStale) {
		t.Errorf("%v", err)
	}
	a.stale = 1
	s := settings()
	s.Expect = 4
	if _, err := s.Apply(t.Context(), a, want); !errors.Is(err, errStale) || a.stale != 0 {
		t.Errorf("%v", err)
	}
	s = settings()
	s.Agree = func(*Plan) error { return errStale }
	if _, err := s.Apply(t.Context(), a, want); err == nil {
		t.Error("it went on without being asked to")
	}
}

func TestAllKeysGoInOneCall(t *testing.T) {
	a := &admin{t: t, revision: 1}
	var text strings.Builder
	text.WriteString(apiText)
	for i := range 450 {
		fmt.Fprintf(&text, "---\nkind: Key\nmetadata: {name: k%d}\nhash: \"%032x\"\nspec: {apply_policies: [gold]}\n", i, i)
	}
	text.WriteString("---\nkind: Key\nmetadata: {name: bob}\ngenerate: true\nspec: {apply_policies: [gold]}\n")
	if _, err := settings().Apply(t.Context(), a, read(t, text.String())); err != nil {
		t.Fatal(err)
	}
	if len(a.batches) != 1 || len(a.batches[0].APIs) != 1 || len(a.batches[0].Keys) != 451 || !a.batches[0].Keys[0].Generate {
		t.Errorf("%d calls", len(a.batches))
	}
}

func TestGatewaysAreWaitedFor(t *testing.T) {
	a := &admin{t: t, revision: 3, keys: 2}
	if n, err := Wait(t.Context(), a, 3, time.Minute); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := Wait(t.Context(), a, 4, 300*time.Millisecond); !errors.Is(err, ErrLate) || !strings.HasSuffix(err.Error(), "2 of 2 gateways have revision 4 after 300ms; missing: b:8080") {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(apiText + "---\n" + goldDoc))
	f.Add([]byte("kind: Key\nmetadata: {name: a}\ngenerate: true\nspec: {}\n---\n---\nkind: Nothing"))
	f.Add([]byte(`{"kind":"API","metadata":{"name":"a"},"spec":{"proxy":5}}{"kind":1}`))
	f.Add([]byte("kind: API\nkind: API\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(secretDoc))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		objects, _ := Parse("f", data, nothing)
		for _, o := range objects {
			if _, _, err := o.Document(false); err != nil {
				t.Errorf("%s: %v", o.Body, err)
			}
		}
	})
}
