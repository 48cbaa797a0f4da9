package definition

import "encoding/json"

// ModeDataGraph is the execution mode of an API that answers operations itself, with what
// its data sources have.
const ModeDataGraph = "executionEngine"

// GraphQLEngine says where a data graph gets the values of its fields.
type GraphQLEngine struct {
	// Where the values of fields are in the responses of REST sources, at most 10,000.
	// Example: [{"type_name": "User", "field_name": "city", "path": ["address", "city"]}]
	FieldConfigs []GraphQLFieldConfig `json:"field_configs,omitempty"`
	// Services that have the values of fields, at most 1000.
	// Example: [{"kind": "REST", "name": "users", "root_fields": [{"type": "Query", "fields": ["user"]}], "config": {"url": "http://users.internal/users/{{.arguments.id}}"}}]
	DataSources []GraphQLDataSource `json:"data_sources,omitempty"`
	// Headers of the requests to all data sources, at most 1000; one of the data source takes precedence.
	// Example: [{"key": "X-Tenant", "value": "$svc_meta.tenant"}]
	GlobalHeaders []GraphQLEngineHeader `json:"global_headers,omitempty"`
	Unknown       Unknown               `json:"-"`
}

// GraphQLFieldConfig says where the value of a field is in the response of a REST source:
// that of a field with a source of its own in the response, that of any other in the value
// of the field above it.
type GraphQLFieldConfig struct {
	// Type that the field belongs to.
	// Example: "User"
	TypeName string `json:"type_name,omitempty"`
	// Name of the field.
	// Example: "city"
	FieldName string `json:"field_name,omitempty"`
	// Whether the value is the whole response, or the whole value above it.
	DisableDefaultMapping bool `json:"disable_default_mapping,omitempty"`
	// Members on the way to the value; a number is an index in an array. Default: the member with the name of the field.
	// Example: ["address", "city"]
	Path    []string `json:"path,omitempty"`
	Unknown Unknown  `json:"-"`
}

// GraphQLDataSource is a service that has the values of fields.
type GraphQLDataSource struct {
	// REST; GraphQL, whose root fields are those of the query, mutation and subscription types; or msgbroker, whose topics have the events of subscriptions.
	// Example: "REST"
	Kind string `json:"kind,omitempty" oneof:"REST GraphQL msgbroker"`
	// Name in errors; unique.
	// Example: "users"
	Name string `json:"name,omitempty"`
	// Whether the source is another API of the gateway; without effect: the URL says so.
	Internal bool `json:"internal,omitempty"`
	// Fields whose values the source has.
	// Example: [{"type": "Query", "fields": ["user"]}]
	RootFields []GraphQLRootFields `json:"root_fields,omitempty"`
	// How the source is called.
	// Example: {"url": "http://users.internal/users/{{.arguments.id}}"}
	Config  GraphQLSourceConfig `json:"config"`
	Unknown Unknown             `json:"-"`
}

// GraphQLRootFields are fields of one type.
type GraphQLRootFields struct {
	// Name of the type.
	// Example: "Query"
	Type string `json:"type,omitempty"`
	// Names of its fields.
	// Example: ["user"]
	Fields  []string `json:"fields,omitempty"`
	Unknown Unknown  `json:"-"`
}

// GraphQLSourceConfig says how a data source is called. The texts of a REST source may hold
// {{.arguments.name}}, {{.object.name}} (a field of the object that the field belongs to)
// and {{.request.headers.Name}}.
type GraphQLSourceConfig struct {
	// Address, such as http://users.internal/users/{{.arguments.id}}, or svc:// and the id or name of another API of the organisation, which is called without the network. Scheme and host are fixed. proxy.transport and upstream_certificates apply to all sources.
	// Example: "http://users.internal/users/{{.arguments.id}}"
	URL string `json:"url,omitempty"`
	// Method of a REST source: GET (default), POST, PUT, PATCH or DELETE. A GraphQL source is called with POST.
	// Example: "GET"
	Method string `json:"method,omitempty" oneof:"GET POST PUT PATCH DELETE"`
	// Headers of requests, at most 1000; values may also hold $svc_context and $svc_meta variables.
	// Example: {"X-Tenant": "$svc_meta.tenant"}
	Headers map[string]string `json:"headers,omitempty"`
	// Parameters that are added to the URL of a REST source, at most 1000. One whose value is a variable without a value is left out.
	// Example: [{"name": "fields", "value": "name,city"}]
	Query []GraphQLParameter `json:"query,omitempty"`
	// Body of requests to a REST source, as JSON; variables in it stand for JSON values, within strings for their text.
	// Example: "{\"id\": {{.arguments.id}}}"
	Body string `json:"body,omitempty"`
	// Seconds within which the source must have answered. Default: proxy.transport.response_timeout.
	// Example: 2.5
	Timeout float64 `json:"timeout,omitempty"`
	// Protocol of subscriptions of a GraphQL source: graphql-ws (default), graphql-transport-ws or sse. An API behind svc:// streams them itself.
	// Example: "sse"
	SubscriptionType string `json:"subscription_type,omitempty" oneof:"graphql-ws graphql-transport-ws sse"`
	// Whether subscriptions by sse are sent with POST.
	SSEUsePost bool `json:"sse_use_post,omitempty"`
	// Whether operation is sent to a GraphQL source in place of one for the selected fields. The source may have fields of any object type then, and values are taken from the data of its response; one with errors has none.
	HasOperation bool `json:"has_operation,omitempty"`
	// Query or mutation of has_operation, such as query($id: ID!) { user(id: $id) { name } }.
	// Example: "query ($id: ID!) { user(id: $id) { name } }"
	Operation string `json:"operation,omitempty"`
	// Variables of operation, an object whose strings may hold the variables of a REST source; a string that is one variable stands for its JSON value.
	// Example: {"id": "{{.arguments.id}}"}
	Variables json.RawMessage `json:"variables,omitempty"`
	// Addresses of the message broker of a msgbroker source, at most 16: amqp://, amqps://, kafka:// or kafkas:// with host and port, or inproc:// for the broker in the gateway. One without a scheme has that of streaming.default_scheme.
	// Example: ["kafka://broker.internal:9092"]
	BrokerAddresses []string `json:"broker_addresses,omitempty"`
	// Topics of a msgbroker source, at most 64. Each message is JSON, and an event of every subscription to a field of the source.
	// Example: ["orders"]
	Topics []string `json:"topics,omitempty"`
	// Consumer group of a msgbroker source: each message goes to the subscribers of one of the gateways. Default: those of all gateways get all messages that come while they are subscribed.
	// Example: "order-subscriptions"
	GroupID string `json:"group_id,omitempty"`
	// Name of the gateway as a client of the message broker. Default: sluice.
	// Example: "sluice"
	ClientID string `json:"client_id,omitempty"`
	// How Kafka shares out partitions in the consumer group. Default: as the members of the group agree.
	// Example: "BalanceStrategySticky"
	BalanceStrategy string `json:"balance_strategy,omitempty" oneof:"BalanceStrategyRange BalanceStrategyRoundRobin BalanceStrategySticky"`
	// Which messages of Kafka are taken: ReadUncommitted (default), or ReadCommitted to leave out those of open and aborted transactions.
	// Example: "ReadCommitted"
	IsolationLevel string `json:"isolation_level,omitempty" oneof:"ReadUncommitted ReadCommitted"`
	// Whether a new consumer group begins with messages that come from then on, in place of the oldest ones that the message broker has.
	StartConsumingLatest bool `json:"start_consuming_latest,omitempty"`
	// Credentials at the message broker. Credentials may stand in broker_addresses as well.
	// Example: {"enable": true, "user": "sluice", "password": "{secret:broker-password}"}
	SASL    *GraphQLBrokerSASL `json:"sasl,omitempty"`
	Unknown Unknown            `json:"-"`
}

// GraphQLBrokerSASL is the credentials of a gateway at a message broker.
type GraphQLBrokerSASL struct {
	// Whether they are used.
	Enable bool `json:"enable,omitempty"`
	// Name of the user; may be a reference to a secret.
	// Example: "sluice"
	User string `json:"user,omitempty"`
	// Password; may be a reference to a secret.
	// Example: "{secret:broker-password}"
	Password string  `json:"password,omitempty"`
	Unknown  Unknown `json:"-"`
}

// GraphQLParameter is a parameter of a URL.
type GraphQLParameter struct {
	// Name of the parameter.
	// Example: "fields"
	Name string `json:"name,omitempty"`
	// Value, not yet encoded.
	// Example: "name,city"
	Value   string  `json:"value,omitempty"`
	Unknown Unknown `json:"-"`
}

// GraphQLEngineHeader is a header of requests to data sources.
type GraphQLEngineHeader struct {
	// Name of the header.
	// Example: "X-Tenant"
	Key string `json:"key,omitempty"`
	// Value; may hold {{.request.headers.Name}}, $svc_context and $svc_meta variables.
	// Example: "$svc_meta.tenant"
	Value   string  `json:"value,omitempty"`
	Unknown Unknown `json:"-"`
}

// IsDataGraph reports whether the API answers GraphQL operations itself, with what its data
// sources have.
func (a *API) IsDataGraph() bool { return a.hasMode(ModeDataGraph) }
