package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	countries "github.com/sluicegate/sluice/internal/sample"
	"github.com/sluicegate/sluice/internal/secret"
)

// demo is the sample upstream with the objects that govern it.
type demo struct {
	upstream     *sample
	key          secret.Value // of the REST API
	reader, full secret.Value // of the GraphQL API
}

// demoQuota and demoPeriod are the quota of the keyed API.
const (
	demoQuota  = 10
	demoPeriod = 60 // seconds
)

// The ids of the demo's objects.
const (
	demoOpen   = "demo-open"
	demoKeyed  = "demo-keyed"
	demoGraph  = "demo-countries"
	demoEvents = "demo-events"

	demoCountries  = "demo-subgraph-countries"
	demoCurrencies = "demo-subgraph-currencies"
	demoAtlas      = "demo-atlas" // the supergraph of both
	demoWorld      = "demo-world" // the supergraph and a REST service

	demoPolicy = "demo"
	demoReader = "demo-reader" // limited in depth and fields
	demoFull   = "demo-full"   // not limited
)

// seed creates missing objects of the demo through the admin's REST API. Existing ones
// stay as they are, except for the address of the sample upstream.
func (u *allInOne) seed(ctx context.Context) error {
	if u.management.key.Empty() {
		return fmt.Errorf("%s is gone, so the demo cannot be looked after; start without --demo", u.management.keyFile)
	}
	upstream, err := startSample()
	if err != nil {
		return err
	}
	u.demo = &demo{upstream: upstream}
	s := &seeder{client: &http.Client{Transport: overMemory(u.memory), Timeout: 15 * time.Second}, key: u.management.key}
	for _, api := range demoAPIs(upstream.url()) {
		if err := s.api(ctx, api); err != nil {
			return err
		}
	}
	for _, p := range demoPolicies() {
		if err := s.policy(ctx, p); err != nil {
			return err
		}
	}
	for _, o := range demoOffers() {
		if err := s.offer(ctx, o); err != nil {
			return err
		}
	}
	for _, k := range []struct {
		into         *secret.Value
		file, policy string
	}{
		{&u.demo.key, "demo.key", demoPolicy},
		{&u.demo.reader, "demo-reader.key", demoReader},
		{&u.demo.full, "demo-full.key", demoFull},
	} {
		if *k.into, err = s.consumer(ctx, filepath.Join(u.cfg.DataDir, k.file), k.policy); err != nil {
			return err
		}
	}
	return nil
}

// object is a JSON object.
type object = map[string]any

func demoAPIs(upstream string) []demoAPI {
	return []demoAPI{
		{id: demoOpen, name: "Demo, open", listenPath: "/open/", open: true, target: upstream},
		{id: demoKeyed, name: "Demo, with a key", listenPath: "/keyed/", target: upstream},
		{id: demoGraph, name: "Demo, GraphQL", listenPath: "/countries/", target: upstream + samplePath, graph: object{"enabled": true, "execution_mode": "proxyOnly", "schema": countries.Schema}},
		{id: demoEvents, name: "Demo, event streams", listenPath: "/events/", open: true, streams: demoStreams},
		{id: demoCountries, name: "Demo, subgraph of countries", listenPath: "/subgraphs/countries/", open: true, target: upstream + countriesPath, graph: subgraphOf(countries.CountriesSDL)},
		{id: demoCurrencies, name: "Demo, subgraph of currencies", listenPath: "/subgraphs/currencies/", open: true, target: upstream + currenciesPath, graph: subgraphOf(countries.CurrenciesSDL)},
		{id: demoAtlas, name: "Demo, supergraph", listenPath: "/atlas/", open: true, graph: demoSupergraph},
		{id: demoWorld, name: "Demo, data graph", listenPath: "/world/", open: true, graph: demoDataGraph},
	}
}

func subgraphOf(sdl string) object {
	return object{"enabled": true, "execution_mode": "subgraph", "subgraph": object{"sdl": sdl}}
}

// demoSupergraph is composed of the subgraphs, which no client calls by itself.
var demoSupergraph = object{"enabled": true, "execution_mode": "supergraph", "supergraph": object{"subgraphs": []object{
	{"name": "countries", "api_id": demoCountries},
	{"name": "currencies", "api_id": demoCurrencies},
}}}

// demoDataGraph has one field from a REST service, and all others from the supergraph.
var demoDataGraph = object{
	"enabled": true, "execution_mode": "executionEngine",
	"schema": `type Query {
  country(code: ID!): Country
  countries(continent: ID): [Country!]!
}

type Country {
  code: ID!
  name: String!
  capital: String
  currency: Currency
  diallingCode: String
}

type Currency {
  code: ID!
  name: String!
}
`,
	"engine": object{
		"data_sources": []object{
			{
				"kind": "GraphQL", "name": "atlas", "root_fields": []object{{"type": "Query", "fields": []string{"country", "countries"}}},
				"config": object{"url": "svc://" + demoAtlas},
			},
			{
				"kind": "REST", "name": "dialling-codes", "root_fields": []object{{"type": "Country", "fields": []string{"diallingCode"}}},
				"config": object{"url": "svc://" + demoOpen + diallingCodePath + "{{.object.code}}"},
			},
		},
		"field_configs": []object{{"type_name": "Country", "field_name": "diallingCode", "path": []string{"prefix"}}},
	},
}

// demoStreams take messages in by POST, and give them out to clients that listen. In
// between is the broker inside the gateway, which keeps what comes while there is none.
var demoStreams = object{
	"publish": object{
		"input":    object{"http_server": object{"path": "/messages"}},
		"pipeline": object{"processors": []object{{"label": "stamp", "mapping": "root = this\nroot.received = now()"}}},
		"output":   object{"msgbroker": object{"addresses": []string{"inproc://"}, "topic": "messages"}},
	},
	"feed": object{
		"input":  object{"msgbroker": object{"addresses": []string{"inproc://"}, "topics": []string{"messages"}, "consumer_group": "feed"}},
		"output": object{"http_server": object{"path": "/feed"}},
	},
}

func demoPolicies() []object {
	rights := func(api, name string, more object) object {
		entry := object{"api_id": api, "api_name": name, "versions": []string{"Default"}}
		maps.Copy(entry, more)
		return object{api: entry}
	}
	return []object{
		{
			"id": demoPolicy, "name": "Demo", "rate": 20, "per": 1, "quota_max": demoQuota, "quota_renewal_rate": demoPeriod,
			"access_rights": rights(demoKeyed, "Demo, with a key", nil),
		},
		{
			"id": demoReader, "name": "Demo, GraphQL reader", "rate": 20, "per": 1, "quota_max": -1, "max_query_depth": 4,
			"access_rights": rights(demoGraph, "Demo, GraphQL", object{"restricted_types": []object{{"name": "Country", "fields": []string{"population"}}}}),
		},
		{
			"id": demoFull, "name": "Demo, GraphQL in full", "rate": 20, "per": 1, "quota_max": -1, "max_query_depth": -1,
			"access_rights": rights(demoGraph, "Demo, GraphQL", nil),
		},
	}
}

// print prints commands to copy. dir is the folder of the admin's key.
func (d *demo) print(w io.Writer, gateway, admin, dir string) {
	say(w, "demo           8 APIs, 3 policies (one: %d calls per %d s), 3 keys. Try:\n", demoQuota, demoPeriod)
	say(w, "  curl -i %s/open/hello\n", gateway)
	say(w, "  curl -i %s/keyed/hello -H 'Authorization: %s'\n", gateway, d.key.Reveal())
	say(w, "  for i in $(seq 12); do curl -s -o /dev/null -w '%%{http_code}\\n' %s/keyed/hello -H 'Authorization: %s'; done\n", gateway, d.key.Reveal())
	say(w, "GraphQL        /countries/: one key may go 4 levels deep and not read Country.population, the other may do all:\n")
	for _, c := range []struct {
		about, query string
		key          secret.Value
	}{
		{"allowed", `{ country(code: \"CH\") { name languages { name } } }`, d.reader},
		{"403, depth limit exceeded", `{ continents { countries { languages { name } } } }`, d.reader},
		{"400, field: population is restricted on type: Country", `{ country(code: \"CH\") { name population } }`, d.reader},
		{"all of it, with the other key", `{ continents { countries { population languages { name } } } }`, d.full},
	} {
		say(w, "  curl -i %s/countries/ -H 'Authorization: %s' -H 'Content-Type: application/json' -d '{\"query\":\"%s\"}'   # %s\n",
			gateway, c.key.Reveal(), c.query, c.about)
	}
	say(w, "Why the second is refused:\n  sluice explain POST /countries/ --server %s --data-dir %s --key %s -d '{\"query\":\"{ continents { countries { languages { name } } } }\"}'\n",
		admin, dir, d.reader.Reveal())
	say(w, "One graph      of two subgraphs and a REST service:\n  curl %s/world/ -H 'Content-Type: application/json' -d '%s'\n", gateway, `{"query":"{ country(code: \"CH\") { name capital currency { name } diallingCode } }"}`)
	say(w, "Event streams  what one command posts, another receives:\n  curl -N %s/events/feed -H 'Accept: text/event-stream'\n  curl -i %s/events/messages -d '{\"text\":\"hello\"}'\n", gateway, gateway)
}

// seeder calls the admin.
type seeder struct {
	client *http.Client
	key    secret.Value
}

var errAbsent = errors.New("not there")

// call makes one call and decodes the answer into into, unless that is nil.
func (s *seeder) call(ctx context.Context, method, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, inMemoryURL+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", s.key.Reveal())
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest && method == http.MethodGet:
		return errAbsent
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// demoAPI is one API of the demo.
type demoAPI struct {
	id, name, listenPath string
	open                 bool // no key is needed
	target               string
	graph                object // of a GraphQL API
	streams              object // of an API of event streams
}

// definition returns the API in JSON.
func (a *demoAPI) definition() object {
	def := object{
		"api_id": a.id, "name": a.name, "use_keyless": a.open, "strip_auth_data": !a.open,
		"proxy": object{"listen_path": a.listenPath, "target_url": a.target, "strip_listen_path": true},
	}
	if a.streams != nil {
		def["x-svc-streaming"] = object{"streams": a.streams}
	}
	if a.graph != nil {
		def["graphql"] = a.graph
	}
	return def
}

// api creates an API, or corrects its target, since the port of the sample may have
// changed.
func (s *seeder) api(ctx context.Context, api demoAPI) error {
	def := object{}
	err := s.call(ctx, http.MethodGet, "/api/apis/"+api.id, nil, &def)
	if errors.Is(err, errAbsent) {
		return s.call(ctx, http.MethodPost, "/api/apis", api.definition(), nil)
	}
	if err != nil {
		return err
	}
	proxy, ok := def["proxy"].(object)
	if !ok || proxy["target_url"] == api.target || api.target == "" {
		return nil
	}
	proxy["target_url"] = api.target
	return s.call(ctx, http.MethodPut, "/api/apis/"+api.id, def, nil)
}

func (s *seeder) policy(ctx context.Context, policy object) error {
	err := s.call(ctx, http.MethodGet, fmt.Sprint("/api/portal/policies/", policy["id"]), nil, nil)
	if !errors.Is(err, errAbsent) {
		return err
	}
	return s.call(ctx, http.MethodPost, "/api/portal/policies", policy, nil)
}

// consumer returns a key with a policy, which is created unless the file has one.
func (s *seeder) consumer(ctx context.Context, file, policy string) (secret.Value, error) {
	kept, err := secret.ReadFile(file)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return kept, err
	}
	var made struct {
		Key string `json:"key_id"`
	}
	if err := s.call(ctx, http.MethodPost, "/api/keys", object{"alias": policy, "apply_policies": []string{policy}}, &made); err != nil {
		return secret.Value{}, err
	}
	v, _, err := secret.KeepFile(file, func() string { return made.Key })
	return v, err
}
