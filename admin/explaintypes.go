package admin

import "time"

// What an Explainer reads and answers, for the description of the API. The gateway's own
// types, which have the same members, are beyond this half; a test compares the two.

// An ExplainQuestion describes the request to explain, or names one that was refused.
type ExplainQuestion struct {
	ID string `json:"id,omitempty" doc:"X-Request-Id of a refused request; all other members are left out then"`

	Method      string   `json:"method,omitempty" doc:"default GET"`
	URL         string   `json:"url,omitempty" doc:"http://host/path?query, or a path"`
	Headers     []string `json:"headers,omitempty" doc:"lines such as Name: value; an object from names to a value or a list of values is read, too"`
	Body        string   `json:"body,omitempty"`
	Bytes       []byte   `json:"body_base64,omitempty" doc:"the body when it is no text"`
	Key         string   `json:"key,omitempty" doc:"sent where the API expects keys"`
	KeyHash     string   `json:"key_hash,omitempty" doc:"hash of the key that calls, in place of key"`
	Policy      string   `json:"policy,omitempty" doc:"id of the policy that calls as if a key had it alone, in place of key"`
	Client      string   `json:"client,omitempty" doc:"address that the request comes from; default 127.0.0.1"`
	TLS         *bool    `json:"tls,omitempty" doc:"whether it comes over TLS; default: whether the URL is https"`
	Certificate string   `json:"certificate,omitempty" doc:"PEM certificate of the client; it implies TLS"`
	Revision    int64    `json:"revision,omitempty" doc:"of the configuration to explain by; default: the one in force"`
	At          string   `json:"at,omitempty" doc:"the moment to explain for, as in RFC 3339; default: now"`
}

// An ExplainReport says what the gateway would do with a request.
type ExplainReport struct {
	Method   string         `json:"method"`
	Path     string         `json:"path" doc:"as it was sent, without the query"`
	Revision string         `json:"revision"`
	At       string         `json:"at,omitempty" doc:"RFC 3339, when the request asks about another moment than now"`
	API      *ExplainAPI    `json:"api,omitempty" doc:"left out when no API is reached"`
	Key      *ExplainKey    `json:"key,omitempty" doc:"left out when no key was found or needed"`
	Steps    []ExplainStep  `json:"steps" nullable:"false"`
	Outcome  ExplainOutcome `json:"outcome"`
}

// ExplainAPI is the API that a request reaches.
type ExplainAPI struct {
	ID       string   `json:"id"`
	Org      string   `json:"org_id,omitempty"`
	Name     string   `json:"name,omitempty"`
	Version  string   `json:"version,omitempty" doc:"left out when there is no choice"`
	Tags     []string `json:"tags,omitempty" nullable:"false" doc:"the API is served by gateways with one of these; left out: by all"`
	Gateways []string `json:"gateways,omitempty" nullable:"false" doc:"that have one of the tags"`
}

// ExplainKey is the key of a request.
type ExplainKey struct {
	Name     string   `json:"name" doc:"what logs call it"`
	Alias    string   `json:"alias,omitempty"`
	Policies []string `json:"policies,omitempty" nullable:"false"`
}

// An ExplainStep is the decision of one stage.
type ExplainStep struct {
	API    string        `json:"api,omitempty" doc:"id of the API of the stage, for an internal call"`
	Result string        `json:"result" enum:"ok,answered,fail,untold" doc:"ok: the request goes on; answered: the stage itself answers; fail: the request is refused; untold: the decision at that moment is unknown, and the request goes on"`
	Stage  string        `json:"stage"`
	Said   string        `json:"said,omitempty" doc:"in one line"`
	Facts  []ExplainFact `json:"facts,omitempty" nullable:"false" doc:"the rules of the decision, the most important first"`
	Fix    string        `json:"fix,omitempty" doc:"of a refusal: what would let the request pass"`
}

// An ExplainFact is a rule that a stage checked.
type ExplainFact struct {
	Rule  string `json:"rule" doc:"the field or limit, as definitions, policies and keys call it"`
	Value string `json:"value" doc:"what it is set to"`
	Seen  string `json:"seen,omitempty" doc:"the value of the request"`
	From  string `json:"from,omitempty" doc:"where the value comes from: definition, policy, key, setting"`
}

// An ExplainOutcome is the answer that the client would get.
type ExplainOutcome struct {
	Allowed  bool         `json:"allowed" doc:"no stage refuses the request"`
	Status   int          `json:"status,omitempty" doc:"of the gateway's own answer; left out: the upstream would answer"`
	Reason   string       `json:"reason,omitempty" doc:"of a refusal"`
	Stage    string       `json:"stage,omitempty" doc:"that refuses"`
	Event    string       `json:"event,omitempty" doc:"that the refusal would raise"`
	Fix      string       `json:"fix,omitempty" doc:"what would let the request pass"`
	Untold   []string     `json:"untold,omitempty" nullable:"false" doc:"stages whose decision at that moment is unknown"`
	Headers  []string     `json:"headers,omitempty" nullable:"false" doc:"lines of the gateway's own answer"`
	Body     string       `json:"body,omitempty" doc:"of that answer"`
	Upstream *ExplainPlan `json:"upstream,omitempty" doc:"the request that the upstream would get"`
}

// An ExplainPlan is the upstream request that would be sent.
type ExplainPlan struct {
	Address string   `json:"address" doc:"host:port"`
	Method  string   `json:"method"`
	Target  string   `json:"target" doc:"path and query"`
	Added   []string `json:"added,omitempty" nullable:"false" doc:"header lines that the client did not send"`
	Removed []string `json:"removed,omitempty" nullable:"false" doc:"names of header lines of the client that are not forwarded"`
	Body    string   `json:"body,omitempty" doc:"what would be sent as body"`
}

// ExplainRefused explains a request that was refused.
type ExplainRefused struct {
	Refusal ExplainRefusal `json:"refusal"`
}

// An ExplainRefusal is the record of a refused request.
type ExplainRefusal struct {
	ID       string           `json:"id" doc:"X-Request-Id of the answer"`
	At       time.Time        `json:"at"`
	Stage    string           `json:"stage"`
	Status   int              `json:"status"`
	Reason   string           `json:"reason"`
	Message  string           `json:"message"`
	Method   string           `json:"method,omitempty"`
	Path     string           `json:"path,omitempty" doc:"as it was sent, without the query"`
	Client   string           `json:"client,omitempty"`
	API      *ExplainAPI      `json:"api,omitempty"`
	Key      string           `json:"key,omitempty" doc:"what logs call it"`
	Policy   string           `json:"policy,omitempty"`
	Revision string           `json:"revision,omitempty"`
	Limits   []ExplainCounted `json:"limits,omitempty" nullable:"false" doc:"at that time"`
	Errors   string           `json:"errors,omitempty" doc:"the GraphQL answer, or its beginning"`
	Upstream string           `json:"upstream,omitempty" doc:"address of the target that was called without success"`
	Cause    string           `json:"cause,omitempty" doc:"why that call failed"`
}

// ExplainCounted is the state of a limit.
type ExplainCounted struct {
	Kind      string     `json:"kind" enum:"rate,quota"`
	Max       int64      `json:"max"`
	Period    string     `json:"period,omitempty" doc:"left out when it never renews"`
	Remaining int64      `json:"remaining"`
	ResetAt   *time.Time `json:"reset_at,omitempty"`
}
