package config

import (
	"net/netip"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
)

// The comments on the fields below are the reference that users read: `sluice
// config reference` prints them. The tags say what is checked:
//
//	range:"1s..5m"      the bounds of a number, a duration or a size, both allowed
//	oneof:"a b"         the values allowed; for a list, of each element
//	form:"address"      the shape of a text, one of forms
//	required:"true"     the text may not be empty
//
// An empty text skips oneof and form.

// Config is the configuration of one process, checked and complete. It does not
// change after Load.
type Config struct {
	// Secret of the gateway API, sent by its callers in X-Svc-Authorization: at least 16
	// characters. Without one the gateway API is not served; `up` generates one and keeps
	// it in data_dir.
	Secret secret.Value `yaml:"secret" form:"guarded"`
	// Directory for data that must survive a restart: the private database, counters,
	// generated keys, the last good configuration. The default is root's; for other users
	// it is $XDG_STATE_HOME/sluice or ~/.local/state/sluice.
	DataDir string `yaml:"data_dir"`
	// Count the calls of all keys of an organisation, and calls without a key, against
	// the organisation's quota and rate, if it has a session.
	EnforceOrgQuotas bool `yaml:"enforce_org_quotas"`

	Gateway   Gateway   `yaml:"gateway"`
	GraphQL   GraphQL   `yaml:"graphql"`
	Upstream  Upstream  `yaml:"upstream"`
	Cache     Cache     `yaml:"cache"`
	Overload  Overload  `yaml:"overload"`
	Keys      Keys      `yaml:"keys"`
	Passwords Passwords `yaml:"passwords"`
	Quota     Quota     `yaml:"quota"`
	Monitor   Monitor   `yaml:"monitor"`
	Database  Database  `yaml:"database"`
	Postgres  Postgres  `yaml:"postgres"`
	Valkey    Valkey    `yaml:"valkey"`
	JWT       JWT       `yaml:"jwt"`
	Events    Events    `yaml:"events"`
	Admin     Admin     `yaml:"admin"`
	Portal    Portal    `yaml:"portal"`
	Streaming Streaming `yaml:"streaming"`
	Telemetry Telemetry `yaml:"telemetry"`

	OverrideMessages Messages `yaml:"override_messages"`

	Usage Usage `yaml:"usage"`
	Log   Log   `yaml:"log"`
}

// Gateway holds the settings of the traffic side.
type Gateway struct {
	// Address for traffic. Empty: only gateway.tls.listen.
	Listen string `yaml:"listen" form:"address"`
	// TLS for traffic.
	TLS TLS `yaml:"tls"`
	// Certificates for traffic that the gateway obtains by ACME.
	ACME ACME `yaml:"acme"`
	// Address of the gateway API (/svc/), apart from traffic: gateway.listen responds to
	// /svc/ with 404. Empty: 127.0.0.1:8083, or with `up` or gateway.control_on_traffic
	// the addresses of traffic.
	ControlListen string `yaml:"control_listen" form:"address"`
	// Serve the gateway API on the addresses of traffic, where all clients can try
	// secrets. Without effect with `up`, which does so unless gateway.control_listen is
	// set.
	ControlOnTraffic bool `yaml:"control_on_traffic"`
	// Calls of the gateway API without the right secret per minute from one address;
	// further ones get 429. Calls with the secret are not affected.
	ControlLoginRate int `yaml:"control_login_rate" range:"1..10000"`
	// Address of the admin that supplies the configuration, such as
	// https://admin.internal:8081. Excludes gateway.apps_dir.
	AdminURL string `yaml:"admin_url" form:"url"`
	// PEM file with the authorities trusted for the certificate of gateway.admin_url, read
	// again when it changes. Empty: the system's.
	AdminCA string `yaml:"admin_ca"`
	// PEM file with the certificate, and its chain, that the gateway presents to an admin
	// with admin.tls.client_ca; read again when it changes. Empty: none.
	AdminCert string `yaml:"admin_cert"`
	// PEM file with its private key. Empty: it is in gateway.admin_cert too.
	AdminKey string `yaml:"admin_key"`
	// Token by which gateways authenticate to the admin: the admin's gateway.token, or
	// better an access key of this gateway alone (`sluice gateway key create`). At least 16
	// characters. It also encrypts the last good configuration on disk.
	Token secret.Value `yaml:"token" form:"guarded"`
	// Former value of gateway.token, while it is changed: an admin accepts both, and a
	// gateway still reads what the former one encrypted on disk. Set it on the admins
	// first, then on the gateways, each with the new gateway.token; then remove it.
	FormerToken secret.Value `yaml:"former_token" form:"sent"`
	// Group of this gateway. A reload of a group reaches all its gateways.
	Group string `yaml:"group" form:"name" required:"true"`
	// Ids of the organisations whose APIs this gateway serves. Empty: all. APIs without an
	// organisation are always served.
	Organisations []string `yaml:"organisations" form:"name"`
	// Segments of this gateway: it serves the APIs without tags, and those that have one of
	// these in their tags. The admin sends it no others.
	Tags []string `yaml:"tags"`
	// Folders whose files definitions can refer to as secrets, {file:/run/secrets/orders};
	// absolute paths. Changed files are noticed within 10 seconds. Empty: none.
	SecretFiles []string `yaml:"secret_files" form:"folder"`
	// Folder of API definitions (*.json), for a gateway without an admin.
	AppsDir string `yaml:"apps_dir"`
	// JSON file with an object from policy id to policy, used with gateway.apps_dir.
	PoliciesFile string `yaml:"policies_file"`
	// Reload when a file in gateway.apps_dir or the policies file changes.
	Watch bool `yaml:"watch"`
	// Share of one processor that loading a changed configuration may use while traffic
	// is served, such as 0.2 for a fifth. 0: no limit, as for the first load at the
	// start.
	ReloadCPU float64 `yaml:"reload_cpu" range:"0..1"`
	// How long a gateway that stops accepts connections while /ready responds with 503, so
	// that load balancers send requests elsewhere; longer than a balancer takes to notice. A
	// second signal ends it. `up`, which nothing can replace meanwhile, has 0s by default.
	DrainDelay time.Duration `yaml:"drain_delay" range:"0s..10m"`
	// How long a stop waits for requests in flight, after gateway.drain_delay.
	DrainTimeout time.Duration `yaml:"drain_timeout" range:"0s..10m"`
	// Time for a client to send the head of a request, and then the body, plus a second
	// for each KiB received; 408 when it passes.
	ReadTimeout time.Duration `yaml:"read_timeout" range:"100ms..1h"`
	// Time for a client to receive each piece of a response; the connection is closed
	// when it passes.
	WriteTimeout time.Duration `yaml:"write_timeout" range:"100ms..1h"`
	// How long an idle keep-alive connection stays open.
	IdleTimeout time.Duration `yaml:"idle_timeout" range:"100ms..1h"`
	// Largest request body; larger ones get 413. An API may set its own limit.
	MaxRequestBody Bytes `yaml:"max_request_body" range:"1KiB..16GiB"`
	// Largest request head, request line included; larger ones get 431.
	MaxHeader Bytes `yaml:"max_header" range:"1KiB..1MiB"`
	// Most header lines in one request; more get 431.
	MaxHeaderCount int `yaml:"max_header_count" range:"1..1000"`
	// Longest request target (path and query); longer ones get 414. At most
	// gateway.max_header.
	MaxURL Bytes `yaml:"max_url" range:"64B..1MiB"`
	// Open client connections; further ones get 503. 0: four fifths of the files
	// that the process may have open.
	MaxConnections int `yaml:"max_connections" range:"0..10000000"`
	// Open connections of one client address; further ones get 503. 0: no limit, because
	// many clients may share the address of a proxy.
	MaxConnectionsPerIP int `yaml:"max_connections_per_ip" range:"0..10000000"`
	// Networks, as CIDRs, whose X-Forwarded-* and X-Request-Id headers are trusted.
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	// Use the X-Request-Id of every caller as the id of its request, not only that of
	// gateway.trusted_proxies. It has 1 to 64 letters, digits and -_.:=+/@; others are
	// replaced.
	KeepRequestID bool `yaml:"keep_request_id"`
	// Read the header of the PROXY protocol, version 1 or 2, at the beginning of each
	// connection from gateway.trusted_proxies, which then must send it: it names the
	// client. Connections from elsewhere have none.
	ProxyProtocol bool `yaml:"proxy_protocol"`
	// Match the domain of API definitions. Off: every API is served on every host.
	CustomDomains bool `yaml:"custom_domains"`
	// How entries of path lists (ignored, white and black lists, replies, size limits)
	// without regular expression operators match: anchored at the start of the path and
	// to the end of a segment, so that /admin matches /admin/x and not /x/admin; or
	// unanchored, anywhere in the path.
	PathLists string `yaml:"path_lists" oneof:"anchored unanchored" required:"true"`
	// Allow connections to be upgraded to WebSocket or another protocol that is not HTTP.
	// Off: the Upgrade header is removed from the request. After an upgrade bytes are
	// passed on unchanged in both directions. Connections to GraphQL APIs speak
	// graphql-transport-ws or graphql-ws, and their operations are governed one by one.
	// Also read as http_server_options.enable_websockets.
	Websockets bool `yaml:"websockets"`
	// Bounds of each connection to a GraphQL API.
	GraphQLConnections GraphQLConnections `yaml:"graphql_connections"`
	// Longest time without data in either direction on an upgraded connection; it is
	// closed when it passes.
	WebsocketIdleTimeout time.Duration `yaml:"websocket_idle_timeout" range:"100ms..24h"`
	// How long an upgraded connection or the event stream of a subscription stays open after
	// its key was revoked or expired, its access right was removed or its API was deleted.
	// 0s: it is not closed.
	TunnelRecheck time.Duration `yaml:"tunnel_recheck" range:"0s..1h"`
	// Upgraded connections, and event streams of subscriptions, that one key may have open
	// at this gateway; further ones get 429. 0: no limit.
	MaxTunnelsPerKey int `yaml:"max_tunnels_per_key" range:"0..10000000"`
	// Upgraded connections, and event streams of subscriptions, that one API may have open
	// at this gateway; further ones get 503. 0: no limit.
	MaxTunnelsPerAPI int `yaml:"max_tunnels_per_api" range:"0..10000000"`
	// Names of the response headers with a client's limits.
	RatelimitHeaders RatelimitHeaders `yaml:"ratelimit_headers"`
	// Omit the header that names Sluice from the gateway's own responses.
	HideGenerator bool `yaml:"hide_generator"`
	// What a refusal contains besides its message: none, or reason (adds the header
	// X-Sluice-Reason).
	ErrorDetail string `yaml:"error_detail" oneof:"none reason" required:"true"`
	// Refused requests that are kept in memory, about a kilobyte each, so that they can
	// be explained by their X-Request-Id. 0: none.
	RefusalsKept int `yaml:"refusals_kept" range:"0..1000000"`
	// Requests per second and API that are recorded for the admin, which can evaluate them
	// again under a changed configuration (sluice replay): method, path, query, headers
	// that rules look at, GraphQL operations with variables, the caller's address, and the
	// hash of the key. Credentials are left out; bodies of other requests as well. 0: none.
	SamplesPerSecond int `yaml:"samples_per_second" range:"0..1000"`
	// Further request headers that are recorded with samples. Those that may authenticate
	// never are.
	SampleHeaders []string `yaml:"sample_headers"`
}

// TLS holds the settings of traffic over TLS. Files are read again when they change, and
// on SIGHUP; an invalid file does not replace the previous certificate.
type TLS struct {
	// Address for traffic over TLS, in addition to gateway.listen or in its place. Empty:
	// none.
	Listen string `yaml:"listen" form:"address"`
	// PEM file with the gateway's certificate chain. It is also used for clients that
	// send no server name.
	Cert string `yaml:"cert"`
	// PEM file with its private key. Empty: it is in gateway.tls.cert too.
	Key string `yaml:"key"`
	// Further certificates, selected by server name: each a PEM file with certificate and
	// key, or two files separated by a colon, certificate first. Certificates with a
	// private key in the store of the admin or the gateway API are used as well.
	Certificates []string `yaml:"certificates"`
	// PEM file of the authorities of client certificates. Other client certificates are
	// refused; clients without a certificate are not. Empty: each API decides by its own
	// list.
	ClientCA string `yaml:"client_ca"`
	// When client certificates are requested: auto (if an API requires one), or always
	// (also for keys that are bound to a certificate, on APIs that require none).
	AskClients string `yaml:"ask_clients" oneof:"auto always" required:"true"`
	// Oldest version of TLS: 1.2 or 1.3.
	MinVersion string `yaml:"min_version" oneof:"1.2 1.3" required:"true"`
	// Time for the handshake of a connection; it is closed when it passes.
	HandshakeTimeout time.Duration `yaml:"handshake_timeout" range:"100ms..5m"`
	// Concurrent handshakes. For a further one, the oldest is ended.
	MaxHandshakes int `yaml:"max_handshakes" range:"1..1000000"`
}

// ACME holds the settings of certificates that the gateway obtains and renews by itself, from
// an authority that speaks ACME (RFC 8555). All gateways of an admin share them, encrypted in
// the database; a gateway without an admin keeps them in data_dir.
type ACME struct {
	// Domains to obtain a certificate for, one each, such as api.example.com; at most 100. No
	// other names are ever requested. Certificates of gateway.tls and of the store are used
	// first for their names. Empty: ACME is off.
	Domains []string `yaml:"domains" form:"domain"`
	// Whether you agree to the terms of service of the authority. Required with
	// gateway.acme.domains.
	AcceptTerms bool `yaml:"accept_terms"`
	// Address for messages of the authority about the account. Empty: none.
	Email string `yaml:"email" form:"email"`
	// Directory of the authority. Its certificates and account are not used with another one.
	Directory string `yaml:"directory" form:"directory" required:"true"`
	// PEM file with the authorities trusted for the certificate of gateway.acme.directory, read
	// again when it changes. Empty: the system's.
	CA string `yaml:"ca"`
	// How control of a domain is proved, in the order in which it is tried: tls-alpn-01, for
	// which the authority connects to port 443, which must reach gateway.tls.listen; or
	// http-01, for which it connects to port 80, which must reach gateway.listen.
	Challenges []string `yaml:"challenges" oneof:"tls-alpn-01 http-01"`
}

// GraphQLConnections holds the bounds of each connection to a GraphQL API.
type GraphQLConnections struct {
	// Operations that may be active on one connection at the same time; further ones end
	// with an error.
	MaxOperations int `yaml:"max_operations" range:"1..100000"`
	// Compress messages (permessage-deflate) on connections whose clients ask for it. Each
	// message is then compressed for each client, which costs CPU.
	Compression bool `yaml:"compression"`
	// Largest message of a client, uncompressed; a larger one closes the connection with code
	// 1009.
	MaxMessage Bytes `yaml:"max_message" range:"1KiB..64MiB"`
	// Memory for messages that wait for a client that reads slowly; more close its
	// connection with code 4500. No single response may be larger. For event streams of
	// subscriptions as well: they end with an error.
	MaxQueue Bytes `yaml:"max_queue" range:"1KiB..1GiB"`
	// Largest response of an upstream to a query or mutation; in place of a larger one, the
	// operation ends with an error. For those that are answered as event streams as well.
	MaxResponse Bytes `yaml:"max_response" range:"1KiB..1GiB"`
	// Time from the handshake until connection_init has come and is acknowledged; the
	// connection is closed with code 4408 when it passes.
	InitTimeout time.Duration `yaml:"init_timeout" range:"100ms..5m"`
	// Connections to one API that may wait for the credential in connection_init, where the
	// API takes it there; further handshakes get 503.
	MaxUnauthenticated int `yaml:"max_unauthenticated" range:"1..1000000"`
	// Time between two heartbeats to the client. The connection of a client that has
	// answered none for two and a half times as long is closed.
	Heartbeat time.Duration `yaml:"heartbeat" range:"1s..10m"`
	// Time for a client to receive one message; the connection is closed when it passes.
	WriteTimeout time.Duration `yaml:"write_timeout" range:"100ms..1h"`
	// Time over which a gateway that stops closes connections one after the other, with
	// code 1012, after which clients connect again. It begins after gateway.drain_delay and
	// takes at most four fifths of gateway.drain_timeout. 0s: all are closed at once.
	DrainSpread time.Duration `yaml:"drain_spread" range:"0s..10m"`
	// Longest time without an operation; the connection is closed with code 1000 when it
	// passes. 0s: it is not.
	IdleTimeout time.Duration `yaml:"idle_timeout" range:"0s..24h"`
}

// RatelimitHeaders names the response headers with a client's limits. A client without
// such limits gets none.
type RatelimitHeaders struct {
	// What they are about: quotas (the client's quota or, if it has none, its rate; on
	// responses of upstreams and on refusals by the quota), or rate_limits (its rate
	// alone, on every response once that was counted, refusals included).
	Source string `yaml:"source" oneof:"quotas rate_limits" required:"true"`
	// Header with the limit. Empty: not sent.
	Limit string `yaml:"limit" form:"header"`
	// Header with the calls left. Empty: not sent.
	Remaining string `yaml:"remaining" form:"header"`
	// Header with the time of renewal, in Unix seconds; of a rate the time when it next
	// allows a call. Empty: not sent.
	Reset string `yaml:"reset" form:"header"`
}

// GraphQL holds the limits of operations on all GraphQL APIs, which keys, policies and
// APIs cannot raise.
type GraphQL struct {
	// Largest body of a GraphQL request; larger ones get 413. At most
	// gateway.max_request_body has an effect.
	MaxBody Bytes `yaml:"max_body" range:"1KiB..64MiB"`
	// Most operations in one batched call of an API that allows batches.
	MaxBatch int `yaml:"max_batch" range:"0..100"`
	// Most tokens of one document, comments not counted.
	MaxTokens int `yaml:"max_tokens" range:"1..1000000"`
	// Deepest nesting of selection sets in one document.
	MaxDepth int `yaml:"max_depth" range:"1..500"`
	// What max_query_depth counts from in definitions without graphql.depth_base: 1, so
	// that { a { b } } has depth 3, or 0, as policies of comparable gateways expect, which
	// makes it 2.
	DepthBase int `yaml:"depth_base" range:"0..1"`
	// Deepest nesting of lists and objects in a literal.
	MaxValueDepth int `yaml:"max_value_depth" range:"1..500"`
	// Most aliases in one document.
	MaxAliases int `yaml:"max_aliases" range:"1..1000000"`
	// Most uses of directives in one document.
	MaxDirectives int `yaml:"max_directives" range:"1..1000000"`
	// Most literals in one document, each value in a list or object counted.
	MaxLiterals int `yaml:"max_literals" range:"1..1000000"`
	// Most fragments that one document defines.
	MaxFragments int `yaml:"max_fragments" range:"1..100000"`
	// Most operations that one document defines.
	MaxOperations int `yaml:"max_operations" range:"1..100000"`
	// Most root fields of the requested operation.
	MaxRootFields int `yaml:"max_root_fields" range:"1..100000"`
	// Most fields of an operation, fragments counted where they are spread.
	MaxFields int `yaml:"max_fields" range:"1..1000000"`
	// Memory for the cache of validated operations.
	Cache Bytes `yaml:"cache" range:"1MiB..16GiB"`
	// Memory for the cache of invalid operations.
	RefusedCache Bytes `yaml:"refused_cache" range:"1MiB..1GiB"`
	// Memory for the cache of plans, by which data graphs ask their data sources.
	Plans Bytes `yaml:"plans" range:"1MiB..16GiB"`
}

// Cache holds the settings of the response cache, for APIs whose definitions turn
// cache_options.enable_cache on.
type Cache struct {
	// Memory for cached responses of all APIs together, heads and keys included. 0B:
	// nothing is cached.
	MaxBytes Bytes `yaml:"max_bytes" range:"0B..64GiB"`
	// Largest body of a cached response; larger ones are not cached. No response may take
	// more than 1/256 of cache.max_bytes.
	MaxBody Bytes `yaml:"max_body" range:"1KiB..64MiB"`
}

// Upstream holds the settings of connections towards upstreams. An API may set
// its own.
type Upstream struct {
	// Time to connect, TLS handshake included; 502 when it passes.
	DialTimeout time.Duration `yaml:"dial_timeout" range:"10ms..5m"`
	// Time from sending a request to the end of the response head, then for each piece of
	// the body; 504 when it passes before the head.
	ResponseTimeout time.Duration `yaml:"response_timeout" range:"10ms..1h"`
	// Connections to one upstream address.
	MaxConnsPerHost int `yaml:"max_conns_per_host" range:"1..100000"`
	// How long a request waits for a free connection when all are in use; 503 when it
	// passes. 0s: it does not wait.
	MaxConnWait time.Duration `yaml:"max_conn_wait" range:"0s..1m"`
	// Requests that may wait for a connection to one upstream address at the same
	// time; further ones get 503 at once.
	MaxWaiting int `yaml:"max_waiting" range:"1..1000000"`
	// How long an idle connection is kept. Shorter than the upstream's own idle timeout.
	IdleConnTimeout time.Duration `yaml:"idle_conn_timeout" range:"100ms..1h"`
	// Retries of an idempotent request whose connection broke before the first byte of
	// the response. 0: none.
	Retries int `yaml:"retries" range:"0..5"`
	// PEM file with the authorities trusted for upstreams. Empty: the system's.
	CAFile string `yaml:"ca_file"`
	// Read and write plain connections to upstreams by direct system calls, which costs
	// less CPU. Off: by the calls of Go's runtime, as with TLS and on systems other than
	// Linux.
	RawIO bool `yaml:"raw_io"`
}

// Overload holds the settings of load shedding.
type Overload struct {
	// Target for the time that requests wait for a processor. When all wait longer for a
	// tenth of a second, the excess gets 503, taken from the APIs and keys that are
	// called most. A thousand clients that call without a pause wait 10 to 30 ms on one
	// processor. At least 1ms; 0s: nothing is shed.
	TargetDelay time.Duration `yaml:"target_delay" range:"0s..10s"`
	// Waiting time above which the gateway sheds as many requests as it takes to return
	// to target_delay. Below it, 95 % of the CPU goes into serving, because a refusal
	// costs about half as much as a served request. Values below target_delay count as
	// target_delay.
	MaxDelay time.Duration `yaml:"max_delay" range:"0s..10s"`
}

// Keys holds the settings of API keys and of the cache of their sessions.
type Keys struct {
	// How keys are stored: sha256, or none (in clear; for a migration only).
	Hash string `yaml:"hash" oneof:"sha256 none" required:"true"`
	// Further hashes under which imported keys may be stored, until they are used: a
	// gateway then stores the key under SHA-256. These hashes can be inverted, so that any
	// token with the hash of such a key opens it; sluice doctor counts what is left. Each
	// costs another look-up for a key that is not found.
	LegacyHashes []string `yaml:"legacy_hashes" oneof:"murmur32 murmur64 murmur128"`
	// Sessions that are cached in memory, about 1 KiB each.
	CacheSize int `yaml:"cache_size" range:"1..10000000"`
	// How long a session in memory is used before it is read from the store again.
	CacheTTL time.Duration `yaml:"cache_ttl" range:"100ms..24h"`
	// While the key store is unreachable, for sessions in memory: serve (use them without
	// end; the admin reports revocations and changes) or refuse (use them for
	// keys.stale_ttl beyond keys.cache_ttl, and then only once the admin has confirmed
	// them). In both cases other keys are asked of the admin. What nobody can decide on
	// gets 503.
	OnStoreError string `yaml:"on_store_error" oneof:"serve refuse" required:"true"`
	// With keys.on_store_error refuse: how long beyond keys.cache_ttl a session in memory
	// is used while the store is unreachable.
	StaleTTL time.Duration `yaml:"stale_ttl" range:"0s..24h"`
	// Unknown keys kept in memory, to protect the store from a flood of them.
	NegativeSize int `yaml:"negative_size" range:"1..10000000"`
	// How long an unknown key is refused without a look-up in the store.
	NegativeTTL time.Duration `yaml:"negative_ttl" range:"0s..1m"`
	// Prefix of generated keys, by which people and secret scanners recognise them.
	// Empty: none.
	Prefix string `yaml:"prefix" form:"token"`
	// Shortest credential that is looked up; shorter ones are refused.
	MinLength int `yaml:"min_length" range:"1..256"`
	// Fewest characters of a key whose text the caller of the admin or the gateway API
	// chooses, as it could be guessed. Names of users, and of keys that sign tokens, are
	// exempt.
	MinOwnLength int `yaml:"min_own_length" range:"3..256"`
	// Accept keys without access rights; they may call every API.
	AllowMasterKeys bool `yaml:"allow_master_keys"`
	// Allow the gateway API to list the hashes of keys.
	ListHashed bool `yaml:"list_hashed"`
}

// Passwords holds the settings of password checks of basic authentication.
type Passwords struct {
	// Verified passwords that are cached, so that they are not hashed again.
	CacheSize int `yaml:"cache_size" range:"1..10000000"`
	// How long a verified password is accepted without hashing it again. A changed
	// password takes effect at once.
	CacheTTL time.Duration `yaml:"cache_ttl" range:"1s..1h"`
	// Wrong passwords of one user per minute; further attempts get 429 without a check,
	// except with the password that was verified in the last hour. 0: no limit.
	WrongPerUser int `yaml:"wrong_per_user" range:"0..10000"`
	// Wrong passwords from one client address (IPv6: one /64) per minute; further
	// attempts get 429 without a check. 0: no limit.
	WrongPerAddress int `yaml:"wrong_per_address" range:"0..1000000"`
	// Passwords that are hashed at the same time, of users with a verified password in
	// the last hour, and as many of others. Each takes 19 MiB and about 40 ms of a
	// processor. Further ones wait, and get 503 after a second.
	HashesAtOnce int `yaml:"hashes_at_once" range:"1..64"`
	// Largest request body that is searched for a user name and a password, for APIs with
	// basic_auth.extract_from_body; larger ones get 413. It is held in memory until the
	// request ends.
	MaxBody Bytes `yaml:"max_body" range:"1KiB..16MiB"`
}

// Quota holds the settings of quotas and rates.
type Quota struct {
	// While the counter store is unreachable, for quotas and rates: local (count in this
	// gateway from the last known values, reconcile afterwards), open (admit), or closed
	// (refuse with 503).
	OnStoreError string `yaml:"on_store_error" oneof:"local open closed" required:"true"`
	// Requests that may wait at the same time because their key is over its rate and has
	// throttle_retry_limit, at most half of them of one key; further ones get 429 at
	// once. 0: none.
	MaxWaiting int `yaml:"max_waiting" range:"0..1000000"`
}

// Monitor holds the settings of notifications about quota usage.
type Monitor struct {
	// Raise the event TriggerExceeded, once in each period, when the share of a quota set
	// below or in a key's monitor.trigger_limits is used.
	EnableTriggerMonitors bool `yaml:"enable_trigger_monitors"`
	// Percentage that raises the event for every quota. 0: only those of keys.
	GlobalTriggerLimit float64 `yaml:"global_trigger_limit" range:"0..100"`
	// Watch the quotas of keys.
	MonitorUserKeys bool `yaml:"monitor_user_keys"`
	// Watch the quotas of organisations.
	MonitorOrgKeys bool `yaml:"monitor_org_keys"`
}

// Database holds the settings of the admin's PostgreSQL.
type Database struct {
	// URL of PostgreSQL, such as postgres://sluice@db.internal/sluice. Empty: `up` runs a
	// private one; `admin` and `migrate` require it.
	URL secret.Value `yaml:"url" form:"postgres"`
	// Connections of this process.
	MaxConns int `yaml:"max_conns" range:"2..1000"`
	// Longest time for one statement.
	StatementTimeout time.Duration `yaml:"statement_timeout" range:"100ms..10m"`
}

// Postgres holds the settings of the private PostgreSQL that `up` runs.
type Postgres struct {
	// Directory of initdb and postgres. Empty: searched on PATH and where distributions
	// install them, newest first.
	BinDir string `yaml:"bin_dir"`
	// Directory for the private database: its files, socket and log. Empty:
	// data_dir.
	DataDir string `yaml:"data_dir"`
	// Memory for the database's page cache.
	SharedBuffers Bytes `yaml:"shared_buffers" range:"1MiB..64GiB"`
}

// Valkey holds the settings of the shared store of counters and sessions, a
// Valkey or Redis.
type Valkey struct {
	// URL of the store: redis://user:password@host:6379/0, rediss:// for TLS, several
	// servers as redis://one:6379,two:6379, or unix:///path/to/socket. Empty: counters
	// and sessions are kept in this process.
	URL secret.Value `yaml:"url" form:"valkey"`
	// User, if it is not in valkey.url.
	Username string `yaml:"username"`
	// Password, if it is not in valkey.url.
	Password secret.Value `yaml:"password"`
	// Name of the Sentinel master. If set, the servers of valkey.url are Sentinels.
	SentinelMaster string `yaml:"sentinel_master" form:"name"`
	// User for the Sentinels.
	SentinelUsername string `yaml:"sentinel_username"`
	// Password for the Sentinels.
	SentinelPassword secret.Value `yaml:"sentinel_password"`
	// The servers form a cluster.
	Cluster bool `yaml:"cluster"`
	// Allow a store beyond loopback without a password or without TLS. Who reaches it can
	// read every session, delete keys and reset quotas.
	Insecure bool `yaml:"insecure"`
	// Use TLS, as rediss:// does.
	TLS bool `yaml:"tls"`
	// PEM file with the authorities trusted for the store. Empty: the system's.
	CAFile string `yaml:"ca_file"`
	// Time for one call of the store; when it passes, the store counts as unreachable.
	Timeout time.Duration `yaml:"timeout" range:"5ms..30s"`
}

// ListenerTLS holds the settings of TLS at an address that is not for traffic. Files are read
// again when they change; an invalid file does not replace the previous certificate.
type ListenerTLS struct {
	// PEM file with the certificate chain. Empty: the address speaks plain HTTP.
	Cert string `yaml:"cert"`
	// PEM file with its private key. Empty: it is in the file of the certificate too.
	Key string `yaml:"key"`
	// PEM file of the authorities of client certificates. All clients without a certificate
	// of one of them are refused during the handshake: browsers, commands, gateways, probes
	// and scrapers of metrics too. Empty: no certificate is requested.
	ClientCA string `yaml:"client_ca"`
	// Oldest version of TLS: 1.2 or 1.3.
	MinVersion string `yaml:"min_version" oneof:"1.2 1.3" required:"true"`
}

// On reports whether the address speaks TLS.
func (t *ListenerTLS) On() bool { return t.Cert != "" }

// Scheme returns that of URLs at the address: http or https.
func (t *ListenerTLS) Scheme() string {
	if t.On() {
		return "https"
	}
	return "http"
}

// Admin holds the settings of the management side.
type Admin struct {
	// Address of the admin's REST API. Addresses other than loopback require admin.tls, or
	// admin.insecure.
	Listen string `yaml:"listen" form:"address" required:"true"`
	// TLS at admin.listen.
	TLS ListenerTLS `yaml:"tls"`
	// URL at which users reach the admin in their browsers, such as
	// https://sluice.example.com/admin; a path in it is that of a proxy in front of the
	// admin, and may be removed by the proxy or not. Empty: the admin is reached at
	// admin.listen, or at the root of a proxy.
	PublicURL string `yaml:"public_url" form:"url"`
	// Key that encrypts secrets in the database, 64 hexadecimal digits (openssl rand -hex
	// 32). Every admin of a database needs the same. Empty: a key is generated and kept
	// in data_dir.
	MasterKey secret.Value `yaml:"master_key"`
	// Former master key. Secrets that it encrypted are still readable; `sluice secrets
	// rotate` encrypts them with admin.master_key, after which this setting can be
	// removed.
	FormerMasterKey secret.Value `yaml:"former_master_key"`
	// Allow plain HTTP on addresses other than loopback, behind a proxy that terminates
	// TLS.
	Insecure bool `yaml:"insecure"`
	// How long browsers that have reached the admin by HTTPS use HTTPS alone for its host
	// (Strict-Transport-Security), such as 365d. It is sent over admin.tls, and to
	// admin.trusted_proxies that say https in X-Forwarded-Proto, but not for localhost and IP
	// addresses. 0s: it is not sent.
	HSTS time.Duration `yaml:"hsts" range:"0s..730d"`
	// Networks, as CIDRs, whose X-Forwarded-For is trusted: clients behind them are
	// distinguished in admin.login_rate and in the audit log. Their X-Forwarded-Proto decides
	// on admin.hsts and portal.hsts. From other addresses both are ignored.
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	// Failed authentications per minute from one address; further ones get 429.
	LoginRate int `yaml:"login_rate" range:"1..10000"`
	// How long entries of the audit log are kept. Developers of the portal may cause at
	// most 1000 entries a day each.
	AuditRetention time.Duration `yaml:"audit_retention" range:"30d..3650d"`
	// Default number of objects on one page of a list.
	PageSize int `yaml:"page_size" range:"1..500"`
	// Whether the admin may call upstreams with private or loopback addresses, as
	// it does to fetch GraphQL schemas: allow, refuse, or auto (allow in `up`,
	// refuse elsewhere). Link-local and metadata addresses are never called.
	PrivateUpstreams string `yaml:"private_upstreams" oneof:"auto allow refuse" required:"true"`
}

// Log holds the settings of the log and of the access log.
type Log struct {
	// Least important message that is written: debug, info, warn or error.
	Level string `yaml:"level" oneof:"debug info warn error" required:"true"`
	// Format of the log on standard error: text, json, or auto (text on a terminal,
	// otherwise json).
	Format string `yaml:"format" oneof:"auto text json" required:"true"`
	// Destination of the access log, one JSON line per request: stdout, file or off.
	Access string `yaml:"access" oneof:"stdout file off" required:"true"`
	// File of the access log, for log.access file. It is opened again on SIGHUP.
	AccessFile string `yaml:"access_file"`
	// Share of successful requests in the access log. Refusals and errors are always
	// logged, except for calls shed under overload, of which one in a hundred is.
	SampleOK float64 `yaml:"sample_ok" range:"0..1"`
}
