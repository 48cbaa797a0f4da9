package admin

import "time"

// What an Explainer reads and answers, for the description of the API. The gateway's own
// types, which have the same members, are beyond this half; a test compares the two.

// An ExplainQuestion describes the request to explain, or names one that was refused.
type ExplainQuestion struct {
	// X-Request-Id of a refused request, whose record the gateways are asked for; all other members
	// are left out then.
	ID string `json:"id,omitempty"`

	// Method of the request. Default: GET.
	Method string `json:"method,omitempty"`
	// Address of the request, http://host/path?query, or a path of the gateway.
	// Example: "/orders/1?full=true"
	URL string `json:"url,omitempty"`
	// Header lines of the request, such as Name: value. An object from names to a value or a list of
	// values is read as well.
	// Example: ["Accept: application/json"]
	Headers []string `json:"headers,omitempty"`
	// Body of the request as text.
	Body string `json:"body,omitempty"`
	// Body of the request in base64, in place of body where that is no text.
	Bytes []byte `json:"body_base64,omitempty"`
	// Key that calls; it is sent where the API expects keys. It is neither stored nor logged.
	Key string `json:"key,omitempty"`
	// Hash of the key that calls, in place of key.
	KeyHash string `json:"key_hash,omitempty"`
	// Id of the policy that calls as if a key had it alone, in place of key.
	Policy string `json:"policy,omitempty"`
	// IP address that the request comes from. Default: 127.0.0.1.
	Client string `json:"client,omitempty"`
	// Whether the request comes over TLS. Default: whether url begins with https.
	TLS *bool `json:"tls,omitempty"`
	// Certificate of the client in PEM form; it implies TLS.
	Certificate string `json:"certificate,omitempty"`
	// Revision of the configuration to explain by. Default: the one in force.
	Revision int64 `json:"revision,omitempty"`
	// Time to explain for (RFC 3339), which decides what has expired. Default: now.
	// Example: "2026-11-28T07:00:00Z"
	At string `json:"at,omitempty" format:"date-time"`
}

// An ExplainReport says what the gateway would do with a request.
type ExplainReport struct {
	// Method of the request.
	Method string `json:"method"`
	// Path of the request as it was sent, without the query.
	Path string `json:"path"`
	// Revision of the configuration that was explained by.
	Revision string `json:"revision"`
	// Time that was explained for (RFC 3339); left out if that is now.
	At string `json:"at,omitempty" format:"date-time"`
	// API that the request reaches; left out if it reaches none.
	API *ExplainAPI `json:"api,omitempty"`
	// Key of the request; left out if none was found or needed.
	Key *ExplainKey `json:"key,omitempty"`
	// Decisions of the stages that the request passes, in their order.
	Steps []ExplainStep `json:"steps" nullable:"false"`
	// Answer that the client would get.
	Outcome ExplainOutcome `json:"outcome"`
}

// ExplainAPI is the API that a request reaches.
type ExplainAPI struct {
	// Id of the API.
	ID string `json:"id"`
	// Id of the organisation that the API belongs to.
	Org string `json:"org_id,omitempty"`
	// Name of the API.
	Name string `json:"name,omitempty"`
	// Version of the API that the request selects; left out if the API has one only.
	Version string `json:"version,omitempty"`
	// Tags of the API, which is served by gateways that have one of them; left out: all gateways serve
	// it.
	Tags []string `json:"tags,omitempty" nullable:"false"`
	// Names of gateways that have one of the tags.
	Gateways []string `json:"gateways,omitempty" nullable:"false"`
}

// ExplainKey is the key of a request.
type ExplainKey struct {
	// Short form of the key's hash, as logs have it.
	Name string `json:"name"`
	// Alias of the key; left out if it has none.
	Alias string `json:"alias,omitempty"`
	// Ids of the policies that the key has.
	Policies []string `json:"policies,omitempty" nullable:"false"`
}

// An ExplainStep is the decision of one stage.
type ExplainStep struct {
	// Id of the API whose stage this is, for a call that an API makes to another inside the gateway;
	// left out for the API of the request.
	API string `json:"api,omitempty"`
	// ok: the request goes on; answered: the stage itself answers; fail: the request is refused;
	// untold: the decision at that time is unknown, and the request goes on.
	Result string `json:"result" enum:"ok,answered,fail,untold"`
	// Name of the stage of the gateway.
	// Example: "limit"
	Stage string `json:"stage"`
	// Decision in one line of English.
	Said string `json:"said,omitempty"`
	// Rules of the decision, the most important first.
	Facts []ExplainFact `json:"facts,omitempty" nullable:"false"`
	// What would let the request pass, in English; of a refusal only.
	Fix string `json:"fix,omitempty"`
}

// An ExplainFact is a rule that a stage checked.
type ExplainFact struct {
	// Field or limit that was checked, as definitions, policies and keys call it.
	// Example: "access_rights"
	Rule string `json:"rule"`
	// Value that the rule is set to.
	Value string `json:"value"`
	// Value that the request has.
	Seen string `json:"seen,omitempty"`
	// Where the value of the rule comes from, such as definition, setting, key or policy.
	From string `json:"from,omitempty"`
}

// An ExplainOutcome is the answer that the client would get.
type ExplainOutcome struct {
	// Whether no stage refuses the request.
	Allowed bool `json:"allowed"`
	// HTTP status of the gateway's own answer; left out: the upstream would answer.
	Status int `json:"status,omitempty"`
	// Reason of the refusal, as metrics and logs have it.
	// Example: "rate_limit"
	Reason string `json:"reason,omitempty"`
	// Name of the stage that refuses the request.
	Stage string `json:"stage,omitempty"`
	// Event that the refusal would raise; left out: none.
	Event string `json:"event,omitempty"`
	// What would let the request pass, in English.
	Fix string `json:"fix,omitempty"`
	// Names of the stages whose decision at that time is unknown.
	Untold []string `json:"untold,omitempty" nullable:"false"`
	// Header lines of the gateway's own answer.
	Headers []string `json:"headers,omitempty" nullable:"false"`
	// Body of the gateway's own answer.
	Body string `json:"body,omitempty"`
	// Request that the upstream would get; left out if the gateway answers itself.
	Upstream *ExplainPlan `json:"upstream,omitempty"`
}

// An ExplainPlan is the upstream request that would be sent.
type ExplainPlan struct {
	// Host and port that the request would be sent to.
	// Example: "orders.internal:8080"
	Address string `json:"address"`
	// Method that the upstream would see.
	Method string `json:"method"`
	// Path and query that the upstream would see.
	Target string `json:"target"`
	// Header lines that the client did not send.
	Added []string `json:"added,omitempty" nullable:"false"`
	// Names of header lines of the client that are not forwarded.
	Removed []string `json:"removed,omitempty" nullable:"false"`
	// Body that would be sent.
	Body string `json:"body,omitempty"`
}

// ExplainRefused explains a request that was refused.
type ExplainRefused struct {
	// Record of the request, from the gateway that refused it.
	Refusal ExplainRefusal `json:"refusal"`
}

// An ExplainRefusal is the record of a refused request.
type ExplainRefusal struct {
	// X-Request-Id of the answer.
	ID string `json:"id"`
	// Time of the request.
	At time.Time `json:"at"`
	// Name of the stage that refused the request.
	Stage string `json:"stage"`
	// HTTP status of the answer.
	Status int `json:"status"`
	// Reason of the refusal, as metrics and logs have it.
	// Example: "rate_limit"
	Reason string `json:"reason"`
	// Message that the client got.
	Message string `json:"message"`
	// Method of the request.
	Method string `json:"method,omitempty"`
	// Path of the request as it was sent, without the query.
	Path string `json:"path,omitempty"`
	// IP address that the request came from.
	Client string `json:"client,omitempty"`
	// API that the request reached; left out if it reached none.
	API *ExplainAPI `json:"api,omitempty"`
	// Short form of the key's hash, as logs have it; left out without a known key.
	Key string `json:"key,omitempty"`
	// Id of the policy that decided; left out if none did.
	Policy string `json:"policy,omitempty"`
	// Revision of the configuration that was in force.
	Revision string `json:"revision,omitempty"`
	// Limits of the caller as they were at that time.
	Limits []ExplainCounted `json:"limits,omitempty" nullable:"false"`
	// GraphQL answer, or its beginning.
	Errors string `json:"errors,omitempty"`
	// Address of the target that was called without success.
	Upstream string `json:"upstream,omitempty"`
	// Reason for which that call failed.
	Cause string `json:"cause,omitempty"`
}

// ExplainCounted is the state of a limit.
type ExplainCounted struct {
	// Kind of the limit.
	Kind string `json:"kind" enum:"rate,quota"`
	// Calls allowed in a period.
	Max int64 `json:"max"`
	// Length of the period; left out if the limit never renews.
	Period string `json:"period,omitempty"`
	// Calls that were left.
	Remaining int64 `json:"remaining"`
	// Time at which the limit renews; left out if it does not.
	ResetAt *time.Time `json:"reset_at,omitempty"`
}
