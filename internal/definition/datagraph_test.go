package definition

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/streams"
)

// dataGraph is the definition of a data graph with members of graphql.engine, and more.
func dataGraph(engine, more string) string {
	return `{"proxy": {"listen_path": "/a", "target_url": ""}, "graphql": {"enabled": true, "execution_mode": "executionEngine",
		"schema": "type Query { a: Int }", "engine": {` + engine + `}}` + more + `}`
}

const restSource = `{"kind": "REST", "name": "s", "root_fields": [{"type": "Query", "fields": ["a"]}], "config": {"url": "http://x/{{.arguments.b}}"`

func TestProblemsOfDataGraphs(t *testing.T) {
	source := func(text string) string { return `"data_sources": [` + text + `]` }
	const at = "graphql.engine.data_sources"
	const without = "must be left out of a data graph, whose data sources have addresses, headers and time-outs of their own"
	for _, c := range []struct {
		engine, more string
		want         []string
	}{
		{``, ``, []string{at + ": is required: the services that have the values of fields"}},
		{source(`{}`), ``, []string{
			at + "[0].name: is required: errors of the source have it", at + `[0].kind: is required: "REST", "GraphQL" or "msgbroker"`,
			at + "[0].root_fields: is required: the fields whose values the source has",
		}},
		{source(restSource + `}}, ` + restSource + `}}`), ``, []string{at + "[1].name: is the name of a data source before it; names are unique"}},
		{source(strings.Replace(restSource, "REST", "msgbroker", 1) + `, "timeout": 1, "balance_strategy": "Best", "isolation_level": "None", "sasl": {"enable": true, "password": "p"}}}`), ``, []string{
			at + "[0].config.url: must be left out: the source is of kind msgbroker", at + "[0].config.timeout: must be left out: the source is of kind msgbroker",
			at + "[0].config.balance_strategy: must be BalanceStrategyRange, BalanceStrategyRoundRobin, BalanceStrategySticky",
			at + "[0].config.isolation_level: must be ReadUncommitted, ReadCommitted", at + "[0].config.balance_strategy: is of a consumer group; set group_id, or leave it out",
			at + "[0].config.broker_addresses: is required, such as kafka://broker.example:9092; inproc:// is the broker in the gateway",
			at + "[0].config.sasl.user: is required beside password", at + "[0].config.topics: is required: at least one topic",
		}},
		{source(topicSource(`["amqp://a", "http://b", "kafka://c"]`, `"group_id": "g", "balance_strategy": "BalanceStrategySticky", "isolation_level": "ReadCommitted"`)), ``, []string{
			at + "[0].config.broker_addresses[1]: has an unknown scheme; want amqp://, amqps://, kafka://, kafkas:// or inproc://",
			at + "[0].config.broker_addresses[2]: has another scheme than the first address; all of them are of one message broker",
			at + "[0].config.balance_strategy: is of Kafka; leave it out", at + "[0].config.isolation_level: is of Kafka; leave it out",
		}},
		{source(topicSource(`["inproc://"]`, `"sasl": {"enable": true, "user": "u", "password": "p"}`)), ``, []string{at + "[0].config.sasl.enable: must be false: inproc:// has no connections"}},
		{source(topicSource(`["amqp://u:p@a"]`, `"sasl": {"enable": true, "user": "u", "password": "p"}`)), ``, []string{at + "[0].config.sasl.enable: must be false beside credentials in broker_addresses"}},
		{source(topicSource(`["amqp://a"]`, `"group_id": "`+strings.Repeat("g", 129)+`"`)), ``, []string{at + "[0].config.group_id: has 129 bytes; at most 128 are allowed"}},
		{source(strings.Replace(topicSource(`["amqp://a"]`, ``), `"orders"`, `"#"`, 1)), ``, []string{at + `[0].config.topics[0]: must not hold "*" or "#": it is the name of one topic`}},
		{source(restSource + `, "topics": ["a"], "sasl": {"enable": true}}}`), ``, []string{
			at + "[0].config.topics: must be left out: the source is of kind REST, and no message broker", at + "[0].config.sasl: must be left out: the source is of kind REST, and no message broker",
		}},
		{source(strings.Replace(restSource, "REST", "SOAP", 1) + `}}`), ``, []string{at + `[0].kind: must be "REST", "GraphQL" or "msgbroker"`}},
		{source(strings.Replace(restSource, "http://x/", "svc:///", 1) + `}}`), ``, []string{at + "[0].config.url: must name an API behind svc://, as in svc://orders/v2: there is none"}},
		{source(strings.Replace(restSource, "http://x/", "svc://x", 1) + `}}`), ``, []string{at + "[0].config.url: must not have variables in its scheme or host"}},
		{source(strings.Replace(restSource, `"name"`, `"internal": true, "name"`, 1) + `}}`), ``, []string{at + "[0].internal: must be false: the source has the address of a service; that of another API is svc:// and its id or name"}},
		{source(strings.Replace(restSource, "http://x/", "ftp://x/", 1) + `}}`), ``, []string{at + "[0].config.url: must begin with http:// or https://"}},
		{source(strings.Replace(restSource, "http://x/", "http://x", 1) + `}}`), ``, []string{at + "[0].config.url: must not have variables in its scheme or host"}},
		{source(restSource + `, "method": "TRACE", "timeout": -1, "headers": {"Host": "a"}}}`), ``, []string{
			at + "[0].config.method: must be GET, POST, PUT, PATCH, DELETE", at + `[0].config.headers["Host"]: must be left out: the gateway writes this header itself`,
			at + "[0].config.timeout: must be from 0 (that of the API) to 3600 seconds",
		}},
		{source(restSource + `, "body": "{}", "query": [{"value": "a"}]}}`), ``, []string{
			at + "[0].config.query[0].name: is required", at + "[0].config.body: must be empty: requests with GET have no body; set method",
		}},
		{source(strings.Replace(restSource, "REST", "GraphQL", 1) + `, "method": "GET", "body": "{}", "has_operation": true, "query": [{}]}}`), ``, []string{
			at + "[0].config.url: must not have variables: the source is of kind GraphQL", at + "[0].config.method: must be POST",
			at + "[0].config.operation: is required where has_operation is true, such as query($id: ID!) { user(id: $id) { name } }",
			at + "[0].config.query: must be empty: the source is of kind GraphQL", at + "[0].config.body: must be empty: the source is of kind GraphQL",
		}},
		{source(restSource + `, "has_operation": true, "operation": "{a}", "variables": []}}`), ``, []string{
			at + "[0].config.has_operation: must be false: the source is of kind REST", at + `[0].config.variables: must be an object, such as {"id": "{{.object.id}}"}`,
		}},
		{source(strings.Replace(restSource, `"Query"`, `"1"`, 1) + `}}`), ``, []string{at + "[0].root_fields[0].type: must be the name of a GraphQL type, such as Query"}},
		{source(strings.Replace(restSource, `["a"]`, `["-"]`, 1) + `}}`), ``, []string{at + "[0].root_fields[0].fields[0]: must be the name of a GraphQL field"}},
		{source(restSource+`}}`) + `, "global_headers": [{"key": "A"}, {"key": "a"}, {"key": "b c"}]`, ``, []string{
			"graphql.engine.global_headers[1].key: is the same header as one before it: names are compared without case",
			`graphql.engine.global_headers[2]["b c"]: must be named as a header, such as X-Api-Key`,
		}},
		{source(restSource+`}}`) + `, "field_configs": [{"type_name": "Query", "field_name": "a", "disable_default_mapping": true, "path": ["b"]}, {"type_name": "Q", "path": ["b", ""]}]`, ``, []string{
			"graphql.engine.field_configs[0].path: must be empty where disable_default_mapping is true: then the value is the whole response",
			"graphql.engine.field_configs[1].field_name: must be the name of a GraphQL field", "graphql.engine.field_configs[1].path[1]: must be the name of a member, or an index",
		}},
		{source(restSource + `}}`), `, "version_data": {"versions": {"Default": {"override_target": "http://other.example"}}}`, []string{`version_data.versions["Default"].override_target: ` + without}},
		{source(restSource + `}}`), `, "version_data": {"versions": {"v": {"global_headers": {"A": "b"}, "use_extended_paths": true, "extended_paths": {
			"hard_timeouts": [{"path": "/", "method": "POST", "timeout": 1}], "transform_headers": [{"path": "/", "method": "POST", "add_headers": {"A": "b"}}],
			"circuit_breakers": [{"path": "/", "method": "POST", "threshold_percent": 0.5, "samples": 5, "return_to_service_after": 5}]}}}}`, []string{
			`version_data.versions["v"].global_headers: ` + without, `version_data.versions["v"].extended_paths.transform_headers: ` + without,
			`version_data.versions["v"].extended_paths.circuit_breakers: ` + without, `version_data.versions["v"].extended_paths.hard_timeouts: ` + without,
		}},
	} {
		if got := problemsOf(t, "api", dataGraph(c.engine, c.more)); !slices.Equal(got, c.want) {
			t.Errorf("%s %s\n got %q\nwant %q", c.engine, c.more, got, c.want)
		}
	}
}

// topicSource is a data source of a message broker.
func topicSource(addresses, more string) string {
	if more != "" {
		more = ", " + more
	}
	return `{"kind": "msgbroker", "name": "s", "root_fields": [{"type": "Subscription", "fields": ["a"]}], "config": {"broker_addresses": ` + addresses + `, "topics": ["orders"]` + more + `}}`
}

func TestTopicsAreStreams(t *testing.T) {
	api := parsed(t, dataGraph(`"data_sources": [`+topicSource(`["kafkas://{secret:host}:9093", "kafkas://b"]`, `"group_id": "g", "balance_strategy": "BalanceStrategyRoundRobin",
		"isolation_level": "ReadCommitted", "start_consuming_latest": true, "sasl": {"enable": true, "user": "{secret:user}", "password": "{secret:word}"}`)+`]`, ``))
	uses := api.SecretUses()
	if len(uses) != 3 || uses[0].Path != "graphql.engine.data_sources[0].config.broker_addresses[0]" || uses[2].Path != "graphql.engine.data_sources[0].config.sasl.user" {
		t.Fatalf("references %v", uses)
	}
	with, err := api.WithSecrets(func(ref SecretRef) (string, error) {
		return map[string]string{"host": "a.example"}[ref.Name] + ref.Name, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	in := with.InForce()
	stream, err := in.Topics("s", &in.GraphQL.Engine.DataSources[0].Config, streams.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := stream.Input.BrokerInput
	if strings.Join(got.Addresses, " ") != "a.examplehost:9093 b:9092" || !got.TLS || got.User != "user" || got.Password != "word" || got.ConsumerGroup != "g" ||
		got.Balance != "roundrobin" || !got.OnlyCommitted || got.StartFromOldest || stream.Output.Subscribers == nil {
		t.Errorf("%+v", got)
	}
}

func TestADataGraphThatIsRightIsAccepted(t *testing.T) {
	data := dataGraph(`"data_sources": [`+restSource+`, "query": [{"name": "b", "value": "{{.arguments.b}}"}], "headers": {"X": "$svc_context.path"}, "timeout": 2}}],
		"field_configs": [{"type_name": "Query", "field_name": "a", "path": ["x", "0"]}], "global_headers": [{"key": "X", "value": "{{.request.headers.X}}"}]`, `, "strip_auth_data": true, "upstream_certificates": {"*": "a"}`)
	data = strings.Replace(data, `"target_url": ""`, `"target_url": "", "transport": {"ssl_ca_file": "ca.pem", "ssl_server_name": "s", "max_conns": 5, "reuse": false}`, 1)
	other := strings.Replace(strings.Replace(data, "http://x/", "svc://x/", 1), `"name": "s"`, `"name": "s", "internal": true`, 1)
	for _, data := range []string{data, other} {
		if got := problemsOf(t, "api", data); got != nil {
			t.Errorf("%q", got)
		}
	}
}
