package reference

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

func kindsOf(t *testing.T) []Kind {
	t.Helper()
	kinds, err := Kinds()
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// Every member has a description of whole sentences, a type, a default and an example.
func TestEveryMemberIsDocumented(t *testing.T) {
	for _, k := range kindsOf(t) {
		for _, m := range k.Members {
			if !strings.HasSuffix(m.Text, ".") {
				t.Errorf("%s %s has no comment of whole sentences: %q", k.Name, m.Path, m.Text)
			}
			if m.Type == "" || m.Default == "" || !json.Valid(m.Example) {
				t.Errorf("%s %s: type %q, default %q, example %q", k.Name, m.Path, m.Type, m.Default, m.Example)
			}
		}
		t.Logf("%s: %d members", k.Name, len(k.Members))
	}
}

const (
	balanced = `{"proxy": {"listen_path": "/orders/", "target_url": "http://orders.internal:8080", "enable_load_balancing": true,
		"target_list": ["http://a.internal"]}}`
	methodActions = `{"proxy": {"listen_path": "/orders/", "target_url": "http://orders.internal:8080"}, "version_data": {"not_versioned": true,
		"versions": {"Default": {"use_extended_paths": true, "extended_paths": {"ignored": [{"path": "/a"}], "black_list": [{"path": "/b"}], "white_list": [{"path": "/c"}]}}}}}`
)

func apiWith(members string) string {
	return `{"proxy": {"listen_path": "/orders/", "target_url": "http://orders.internal:8080"}, ` + members + `}`
}

// graphOf is a data graph with a source.
func graphOf(source string) string {
	return `{"proxy": {"listen_path": "/orders/"}, "graphql": {"enabled": true, "execution_mode": "executionEngine", "schema": "type Query { user: ID }",
		"engine": {"data_sources": [{"name": "users", "root_fields": [{"type": "Query", "fields": ["user"]}], ` + source + `}]}}}`
}

// topicsOf is a data graph with a message broker.
func topicsOf(more string) string {
	return graphOf(`"kind": "msgbroker", "config": {"broker_addresses": ["kafka://broker.internal"], "topics": ["orders"]` + more + `}`)
}

// contexts are objects in which members have an effect that have none beside others; the
// longest beginning of a path counts.
var contexts = map[string]string{
	"api":                    apiWith(`"active": true`),
	"api jwt_":               apiWith(`"enable_jwt": true, "jwt_source": "https://login.example/jwks", "jwt_default_policies": ["free"]`),
	"api jwt_signing_method": apiWith(`"enable_jwt": true`),
	"api proxy.target_list":  balanced,
	"api proxy.ejection":     balanced,
	"api graphql.engine": `{"proxy": {"listen_path": "/orders/"},
		"graphql": {"enabled": true, "execution_mode": "executionEngine", "schema": "type Query { orders: [ID] }"}}`,
	"api graphql.supergraph":                                                 `{"proxy": {"listen_path": "/orders/"}, "graphql": {"enabled": true, "execution_mode": "supergraph"}}`,
	"api graphql.engine.data_sources[].config.operation":                     graphOf(`"kind": "GraphQL", "config": {"url": "http://users.internal/graphql", "has_operation": true}`),
	"api graphql.engine.data_sources[].config.subscription_type":             graphOf(`"kind": "GraphQL", "config": {"url": "http://users.internal/graphql"}`),
	"api graphql.engine.data_sources[].config.has_operation":                 graphOf(`"kind": "GraphQL", "config": {"url": "http://users.internal/graphql", "operation": "{ user { name } }"}`),
	"api graphql.engine.data_sources[].config.body":                          graphOf(`"kind": "REST", "config": {"url": "http://users.internal/", "method": "POST"}`),
	"api graphql.engine.data_sources[].config.broker_addresses":              topicsOf(""),
	"api graphql.engine.data_sources[].config.topics":                        topicsOf(""),
	"api graphql.engine.data_sources[].config.group_id":                      topicsOf(""),
	"api graphql.engine.data_sources[].config.client_id":                     topicsOf(""),
	"api graphql.engine.data_sources[].config.isolation_level":               topicsOf(""),
	"api graphql.engine.data_sources[].config.start_consuming_latest":        topicsOf(""),
	"api graphql.engine.data_sources[].config.sasl":                          topicsOf(""),
	"api graphql.engine.data_sources[].config.balance_strategy":              topicsOf(`, "group_id": "g"`),
	"api graphql.engine.data_sources[].internal":                             graphOf(`"kind": "REST", "config": {"url": "svc://users"}`),
	"api version_data.versions{}.extended_paths":                             apiWith(`"version_data": {"not_versioned": true, "versions": {"Default": {"use_extended_paths": true}}}`),
	"api version_data.versions{}.extended_paths.ignored[].method_actions":    methodActions,
	"api version_data.versions{}.extended_paths.black_list[].method_actions": methodActions,
	"api version_data.versions{}.extended_paths.white_list[].method_actions": methodActions,
	"api definition":          apiWith(`"version_data": {"versions": {"v1": {"name": "v1"}, "v2": {"name": "v2"}}}`),
	"api definition.versions": apiWith(`"definition": {"enabled": true}`),
	"api allowed_ips":         apiWith(`"enable_ip_whitelisting": true`),
	"api blacklisted_ips":     apiWith(`"enable_ip_blacklisting": true`),
	"api auth.":               apiWith(`"auth": {"use_param": true}`),
	"api auth_configs{}":      apiWith(`"auth_configs": {"authToken": {"use_param": true}}`),
	"api proxy.transport.ssl_": `{"proxy": {"listen_path": "/orders/", "target_url": "http://orders.internal:8080",
		"transport": {"ssl_certificate_file": "client.pem", "ssl_key_file": "client.key"}}}`,
	"policy quota_renewal_zone":                             `{"quota_renewal_calendar": "day"}`,
	"key quota_renewal_zone":                                `{"quota_renewal_calendar": "day"}`,
	"policy access_rights{}.limit.quota_renewal_zone":       `{"access_rights": {"orders": {"limit": {"quota_renewal_calendar": "day"}}}}`,
	"key access_rights{}.limit.quota_renewal_zone":          `{"access_rights": {"orders": {"limit": {"quota_renewal_calendar": "day"}}}}`,
	"policy access_rights_array[].limit.quota_renewal_zone": `{"access_rights_array": [{"api_id": "orders", "limit": {"quota_renewal_calendar": "day"}}]}`,
	"policy": `{}`,
	"key":    `{}`,
}

// documentWith returns an object of a kind that has a value at the path of a member. What the
// path leads through has its example.
func documentWith(t *testing.T, k *Kind, m *Member, value any) map[string]any {
	t.Helper()
	best := k.Name
	for begin := range contexts {
		if strings.HasPrefix(k.Name+" "+m.Path, begin) && len(begin) > len(best) {
			best = begin
		}
	}
	var document map[string]any
	if err := json.Unmarshal([]byte(contexts[best]), &document); err != nil {
		t.Fatal(err)
	}
	return put(t, k, document, "", m.Path, value).(map[string]any)
}

// put sets the value at rest, a path, below what stands at path.
func put(t *testing.T, k *Kind, at any, path, rest string, value any) any {
	t.Helper()
	switch {
	case rest == "":
		return value
	case strings.HasPrefix(rest, "[]"):
		list, _ := at.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = put(t, k, list[0], path+"[]", rest[2:], value)
		return list
	case strings.HasPrefix(rest, "{}"):
		entries, _ := at.(map[string]any)
		if len(entries) == 0 {
			entries = map[string]any{"GET": nil}
		}
		name := slices.Sorted(keysOf(entries))[0]
		entries[name] = put(t, k, entries[name], path+"{}", rest[2:], value)
		return entries
	}
	rest = strings.TrimPrefix(rest, ".")
	object, _ := at.(map[string]any)
	if object == nil {
		object = make(map[string]any)
	}
	end := strings.IndexAny(rest, ".[{")
	if end < 0 {
		end = len(rest)
	}
	name := rest[:end]
	inner := strings.TrimPrefix(path+"."+name, ".")
	below := object[name]
	if below == nil {
		if found := k.Find(inner); len(found) > 0 {
			_ = json.Unmarshal(found[0].Example, &below)
		}
	}
	object[name] = put(t, k, below, inner, rest[end:], value)
	return object
}

func keysOf(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range m {
			if !yield(name) {
				return
			}
		}
	}
}

// concrete is a path of a problem as reference has it: with [] and {}.
func concrete(path string) string {
	var b strings.Builder
	for path != "" {
		if path[0] != '[' {
			b.WriteByte(path[0])
			path = path[1:]
			continue
		}
		if quoted, err := strconv.QuotedPrefix(path[1:]); err == nil {
			b.WriteString("{}")
			path = path[len(quoted)+2:]
			continue
		}
		b.WriteString("[]")
		path = path[strings.IndexByte(path, ']')+1:]
	}
	return b.String()
}

// problems returns the problems of an object at a member, its elements or below it.
func problems(t *testing.T, kind string, document any, path string) (found []string) {
	t.Helper()
	data, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	switch kind {
	case "api":
		_, err = definition.ParseAPI(data)
	case "policy":
		_, err = definition.ParseNewPolicy(data)
	case "key":
		_, err = definition.ParseNewSession(data)
	}
	all, ok := err.(*definition.Problems)
	if err != nil && !ok {
		t.Fatal(err)
	}
	if ok {
		for _, p := range *all {
			if at := concrete(p.Path); at == path || isBelow(at, path) {
				found = append(found, p.String())
			}
		}
	}
	return found
}

// An example is a value that the member may have.
func TestExamplesAreValid(t *testing.T) {
	for _, k := range kindsOf(t) {
		for _, m := range k.Members {
			var value any
			if err := json.Unmarshal(m.Example, &value); err != nil {
				continue // reported by TestEveryMemberIsDocumented
			}
			if found := problems(t, k.Name, documentWith(t, &k, &m, value), m.Path); len(found) > 0 {
				t.Errorf("%s %s: %q", k.Name, m.Path, found)
			}
		}
	}
}

// beyond returns values that break the bounds and the allowed values of a member.
func beyond(m *Member) (values []any) {
	typ := bare(m.field.Type)
	switch {
	case strings.HasPrefix(m.Path, "quotas[]."): // what is filled in is not checked
		return nil
	case len(m.Allowed) > 0 && isNumber(typ):
		return []any{-1}
	case len(m.Allowed) > 0:
		return []any{"no-such-value"}
	}
	if m.Items != nil {
		values = append(values, []any{*m.Items.Most + 1})
	}
	b := m.Bounds
	switch {
	case b == nil:
	case isNumber(typ):
		if b.Most != nil {
			values = append(values, *b.Most+1)
		}
		if b.Least != nil && *b.Least <= 0 {
			values = append(values, *b.Least-1)
		} else if b.Least != nil && typ.Kind() == reflect.Float64 {
			values = append(values, *b.Least/2)
		} else if b.Least != nil && *b.Least > 1 {
			values = append(values, *b.Least-1)
		}
	case typ.Kind() == reflect.String:
		values = append(values, strings.Repeat("a", int(*b.Most)+1))
	case typ.Kind() == reflect.Slice:
		var one []any
		_ = json.Unmarshal(m.Example, &one)
		values = append(values, slices.Repeat(one[:1], int(*b.Most)+1))
	case typ.Kind() == reflect.Map:
		var some map[string]any
		_ = json.Unmarshal(m.Example, &some)
		many := make(map[string]any)
		for i := range int(*b.Most) + 1 {
			for _, value := range some {
				many["n"+strconv.Itoa(i)] = value
			}
		}
		values = append(values, many)
	}
	return values
}

// What the reference says is not allowed is refused.
func TestBoundsAreThoseOfValidation(t *testing.T) {
	checked := 0
	for _, k := range kindsOf(t) {
		for _, m := range k.Members {
			for _, value := range beyond(&m) {
				checked++
				if found := problems(t, k.Name, documentWith(t, &k, &m, value), m.Path); len(found) == 0 {
					text, _ := json.Marshal(value)
					t.Errorf("%s %s (%s) is accepted with %.80s", k.Name, m.Path, m.Range(), text)
				}
			}
			for _, allowed := range m.Allowed {
				var value any = allowed
				if isNumber(bare(m.field.Type)) {
					value = json.Number(allowed)
				}
				found := problems(t, k.Name, documentWith(t, &k, &m, value), m.Path)
				if slices.ContainsFunc(found, func(p string) bool { return strings.Contains(p, "must be ") }) {
					t.Errorf("%s %s: %q", k.Name, m.Path, found)
				}
			}
		}
	}
	t.Logf("%d values", checked)
}
