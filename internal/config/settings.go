package config

import (
	"net/netip"
	"time"

	"github.com/sluicegate/sluice/internal/quantity"
	"github.com/sluicegate/sluice/internal/secret"
)

// The comments on the fields below are the reference that users read: `sluice
// config reference` prints them. The tags say what is checked:
//
//	range:"1s..5m"      the bounds of a number, a duration or a size, both allowed
//	oneof:"a b"         the values allowed; for a list, of each element
//	form:"address"      the shape of a text: address, url, header, postgres, valkey, name, token
//	required:"true"     the text may not be empty
//
// An empty text skips oneof and form.

// Config is the configuration of one process, checked and complete. It does not
// change after Load.
type Config struct {
	// Secret of the gateway API, sent by its callers in X-Svc-Authorization.
	// Without one the gateway API is not served; `up` generates one and keeps it
	// in data_dir.
	Secret secret.Value `yaml:"secret"`
	// Directory for what must survive a restart: the private database, counters,
	// generated keys, the last good configuration. The default is that of root;
	// other users have $XDG_STATE_HOME/sluice or ~/.local/state/sluice.
	DataDir string `yaml:"data_dir"`
	// Hold the calls of all keys of an organisation, and calls without one, against
	// the quota and the rate of the organisation, where it has a session.
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
	Telemetry Telemetry `yaml:"telemetry"`

	OverrideMessages Messages `yaml:"override_messages"`

	Usage Usage `yaml:"usage"`
	Log   Log   `yaml:"log"`
}

// Bytes is a size in bytes. As text it has a unit: B, KiB, MiB, GiB or TiB.
type Bytes = quantity.Bytes

// Gateway holds the settings of the traffic side.
type Gateway struct {
	// Address for traffic. Empty: none but gateway.tls.listen.
	Listen string `yaml:"listen" form:"address"`
	// TLS for traffic.
	TLS TLS `yaml:"tls"`
	// Address of its own for the gateway API (/svc/). Empty: the gateway API is
	// on gateway.listen. With an address, gateway.listen answers /svc/ with 404.
	ControlListen string `yaml:"control_listen" form:"address"`
	// Address of the admin that supplies the configuration, such as
	// https://admin.internal:8081. Excludes gateway.apps_dir.
	AdminURL string `yaml:"admin_url" form:"url"`
	// Token that a gateway shows to its admin: the same on both sides. It also
	// seals the last good configuration on disk.
	Token secret.Value `yaml:"token"`
	// Group of this gateway. A reload of a group reaches all its gateways.
	Group string `yaml:"group" form:"name" required:"true"`
	// Folder of API definitions (*.json), for a gateway without an admin.
	AppsDir string `yaml:"apps_dir"`
	// JSON file with an object from policy id to policy, beside gateway.apps_dir.
	PoliciesFile string `yaml:"policies_file"`
	// Reload when a file in gateway.apps_dir or the policies file changes.
	Watch bool `yaml:"watch"`
	// Share of one processor that loading a changed configuration may take beside
	// traffic, 0.2 for a fifth. 0: whatever there is, as for the first load at the
	// start.
	ReloadCPU float64 `yaml:"reload_cpu" range:"0..1"`
	// How long a stop waits for requests in flight.
	DrainTimeout time.Duration `yaml:"drain_timeout" range:"0s..10m"`
	// Time for a client to send the head of a request; then the same for its body,
	// and a second more for each KiB of it that came. 408 when it passes.
	ReadTimeout time.Duration `yaml:"read_timeout" range:"100ms..1h"`
	// Time for a client to take each piece of an answer; the connection is closed
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
	// Open connections of one client address; further ones get 503. 0: no limit of
	// its own, since many callers may share the address of a proxy.
	MaxConnectionsPerIP int `yaml:"max_connections_per_ip" range:"0..10000000"`
	// Networks, as CIDRs, whose X-Forwarded-* headers are believed.
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	// Honour the domain of API definitions. Off: every API answers on every host.
	CustomDomains bool `yaml:"custom_domains"`
	// How entries of path lists (ignored, white and black lists, replies, size
	// limits) without operators of regular expressions match: anchored at the start
	// of the path and up to the end of a segment, so that /admin takes /admin/x and
	// not /x/admin; or unanchored, anywhere in the path.
	PathLists string `yaml:"path_lists" oneof:"anchored unanchored" required:"true"`
	// Let clients and upstreams leave HTTP for another protocol, WebSocket or any
	// that is not HTTP again. Off: the wish is left out of the request. What is
	// said then is passed on as it is, in both directions; GraphQL APIs never do.
	Websockets bool `yaml:"websockets"`
	// Longest silence of both sides on such a connection; it is closed when it
	// passes.
	WebsocketIdleTimeout time.Duration `yaml:"websocket_idle_timeout" range:"100ms..24h"`
	// How long such a connection may outlive what allowed it: a key that is revoked
	// or expires, a right that is taken away, an API that leaves. It is then cut.
	// 0s: it goes on.
	TunnelRecheck time.Duration `yaml:"tunnel_recheck" range:"0s..1h"`
	// Such connections that one key may have open at this gateway; a further one
	// gets 429. 0: any number.
	MaxTunnelsPerKey int `yaml:"max_tunnels_per_key" range:"0..10000000"`
	// Such connections that one API may have open at this gateway; a further one
	// gets 503. 0: any number.
	MaxTunnelsPerAPI int `yaml:"max_tunnels_per_api" range:"0..10000000"`
	// Names of the response headers that tell a client its limits.
	RatelimitHeaders RatelimitHeaders `yaml:"ratelimit_headers"`
	// Leave out the header that names Sluice on answers of the gateway itself.
	HideGenerator bool `yaml:"hide_generator"`
	// What a refusal tells beyond its message: none, or reason (adds the header
	// X-Sluice-Reason).
	ErrorDetail string `yaml:"error_detail" oneof:"none reason" required:"true"`
	// Refused requests that are remembered, about a kilobyte each, so that their
	// X-Request-Id can be explained. 0: none.
	RefusalsKept int `yaml:"refusals_kept" range:"0..1000000"`
}

// TLS holds the settings of traffic over TLS. Files are read again when they
// change, and at SIGHUP; one that is wrong then does not replace what it held.
type TLS struct {
	// Address for traffic over TLS, beside gateway.listen or in its place. Empty:
	// none.
	Listen string `yaml:"listen" form:"address"`
	// PEM file with the certificate of the gateway, and those that lead to its
	// authority. It is also for clients that ask for no name.
	Cert string `yaml:"cert"`
	// PEM file with its private key. Empty: it is in gateway.tls.cert too.
	Key string `yaml:"key"`
	// Further certificates, for the names that they have: each a PEM file with
	// certificate and key, or two files with a colon between them, certificate
	// first. Certificates with a key in the store of the admin, or of the gateway
	// API, are used beside these.
	Certificates []string `yaml:"certificates"`
	// PEM file of the authorities of clients' certificates. A client that shows
	// another one is refused; one that shows none is not. Empty: each API decides
	// by its own list.
	ClientCA string `yaml:"client_ca"`
	// Which clients are asked for a certificate: auto (where an API wants one), or
	// always (also for keys that are bound to one, on APIs that want none).
	AskClients string `yaml:"ask_clients" oneof:"auto always" required:"true"`
	// Oldest version of TLS: 1.2 or 1.3.
	MinVersion string `yaml:"min_version" oneof:"1.2 1.3" required:"true"`
	// Time for the handshake of a connection; it is closed when it passes.
	HandshakeTimeout time.Duration `yaml:"handshake_timeout" range:"100ms..5m"`
	// Handshakes at the same time. For one more, the one that takes longest is
	// ended.
	MaxHandshakes int `yaml:"max_handshakes" range:"1..1000000"`
}

// RatelimitHeaders names the response headers that tell a client its limits.
type RatelimitHeaders struct {
	// Header with the limit. Empty: not sent.
	Limit string `yaml:"limit" form:"header"`
	// Header with the calls left. Empty: not sent.
	Remaining string `yaml:"remaining" form:"header"`
	// Header with the time of renewal, in Unix seconds. Empty: not sent.
	Reset string `yaml:"reset" form:"header"`
}

// GraphQL holds the settings that bound the operations of all GraphQL APIs,
// whatever keys, policies and APIs allow.
type GraphQL struct {
	// Largest body of a GraphQL request; larger ones get 413. At most
	// gateway.max_request_body has an effect.
	MaxBody Bytes `yaml:"max_body" range:"1KiB..64MiB"`
	// Most operations in one batched call of an API that takes batches.
	MaxBatch int `yaml:"max_batch" range:"0..100"`
	// Most tokens of one document, comments not counted.
	MaxTokens int `yaml:"max_tokens" range:"1..1000000"`
	// Deepest nesting of selection sets in one document.
	MaxDepth int `yaml:"max_depth" range:"1..500"`
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
	// Most fields at the root of the operation that is asked for.
	MaxRootFields int `yaml:"max_root_fields" range:"1..100000"`
	// Most fields of an operation, fragments counted where they are spread.
	MaxFields int `yaml:"max_fields" range:"1..1000000"`
	// Memory for what is known of operations that were seen before.
	Cache Bytes `yaml:"cache" range:"1MiB..16GiB"`
	// Memory for what is known of invalid operations.
	RefusedCache Bytes `yaml:"refused_cache" range:"1MiB..1GiB"`
}

// Cache holds the settings of kept answers, for APIs whose definitions turn
// cache_options.enable_cache on.
type Cache struct {
	// Memory for kept answers of all APIs together, heads and keys included. 0B:
	// none are kept, whatever definitions say.
	MaxBytes Bytes `yaml:"max_bytes" range:"0B..64GiB"`
	// Largest body of an answer that is kept; larger ones go to their callers and
	// are forgotten. No answer may take more than 1/256 of cache.max_bytes.
	MaxBody Bytes `yaml:"max_body" range:"1KiB..64MiB"`
}

// Upstream holds the settings of connections towards upstreams. An API may set
// its own.
type Upstream struct {
	// Time to connect, TLS handshake included; 502 when it passes.
	DialTimeout time.Duration `yaml:"dial_timeout" range:"10ms..5m"`
	// Time from sending a request to the end of the head of its answer, then for
	// each piece of its body; 504 when it passes before the head.
	ResponseTimeout time.Duration `yaml:"response_timeout" range:"10ms..1h"`
	// Connections to one upstream address.
	MaxConnsPerHost int `yaml:"max_conns_per_host" range:"1..100000"`
	// How long a request waits for a free connection when all are busy; 503 when
	// it passes. 0s: it does not wait.
	MaxConnWait time.Duration `yaml:"max_conn_wait" range:"0s..1m"`
	// Requests that may wait for a connection to one upstream address at the same
	// time; further ones get 503 at once.
	MaxWaiting int `yaml:"max_waiting" range:"1..1000000"`
	// How long an idle connection is kept. Shorter than what the upstream keeps.
	IdleConnTimeout time.Duration `yaml:"idle_conn_timeout" range:"100ms..1h"`
	// Further attempts for an idempotent request whose connection broke before
	// the first byte of the answer. 0: none.
	Retries int `yaml:"retries" range:"0..5"`
	// PEM file with the authorities trusted for upstreams. Empty: the system's.
	CAFile string `yaml:"ca_file"`
	// Read and write plain connections to upstreams past the runtime's own calls,
	// which costs less. Off: the ordinary way, as with TLS and on systems other
	// than Linux. Both behave alike but for one thing: on, a connection that had
	// its last answer less than a millisecond ago takes a GET without a look at
	// whether something came behind that answer. Turn it off for upstreams that
	// are known to send answers that nobody asked for.
	RawIO bool `yaml:"raw_io"`
}

// Overload holds the settings of what is done when more calls come in than can
// be served.
type Overload struct {
	// How long requests may wait until the gateway gets to them. When all wait for
	// longer, for a tenth of a second, those that are too many get 503: of the APIs
	// and keys that are called most, so that the others are served. Clients that
	// call without a pause wait for each other, a thousand of them for 10 to 30 ms
	// on one processor. At least 1ms; 0s: nothing is refused.
	TargetDelay time.Duration `yaml:"target_delay" range:"0s..10s"`
	// How long requests may wait before the gateway refuses as many as it takes to
	// come back to target_delay. Refusing costs about half of what serving does. So
	// below this, 95 % of what the gateway can do go into serving: clients
	// whose number is bounded then wait for each other. Less than target_delay: as
	// much as that.
	MaxDelay time.Duration `yaml:"max_delay" range:"0s..10s"`
}

// Keys holds the settings of API keys and of the cache of their sessions.
type Keys struct {
	// How keys are stored: sha256, or none (in clear; for a migration only).
	Hash string `yaml:"hash" oneof:"sha256 none" required:"true"`
	// Older hashes under which imported keys may be stored; each costs a second
	// look-up for a key that is not found.
	LegacyHashes []string `yaml:"legacy_hashes" oneof:"murmur32 murmur64 murmur128"`
	// Sessions kept in memory: about 1 KiB each for the 65536 that were used last,
	// and 300 bytes for each of the others, which are packed.
	CacheSize int `yaml:"cache_size" range:"1..10000000"`
	// How long a session in memory is used before the store is asked again.
	CacheTTL time.Duration `yaml:"cache_ttl" range:"100ms..24h"`
	// How long beyond keys.cache_ttl a session in memory is used while the store
	// is away.
	StaleTTL time.Duration `yaml:"stale_ttl" range:"0s..24h"`
	// Unknown keys kept in memory, so that a flood of them does not reach the store.
	NegativeSize int `yaml:"negative_size" range:"1..10000000"`
	// How long an unknown key is refused without asking the store.
	NegativeTTL time.Duration `yaml:"negative_ttl" range:"0s..1m"`
	// What generated keys begin with, so that people and scanners recognise them.
	// Empty: nothing.
	Prefix string `yaml:"prefix" form:"token"`
	// Shortest credential that is looked up at all; shorter ones are refused.
	MinLength int `yaml:"min_length" range:"1..256"`
	// Accept keys without access rights, which may call every API.
	AllowMasterKeys bool `yaml:"allow_master_keys"`
	// Let the gateway API list the hashes of keys.
	ListHashed bool `yaml:"list_hashed"`
}

// Passwords holds the settings of checking the passwords of basic
// authentication.
type Passwords struct {
	// Passwords that are remembered as right, so that they need not be hashed.
	CacheSize int `yaml:"cache_size" range:"1..10000000"`
	// How long a password that was right is taken for right without hashing it
	// again. A changed password counts at once all the same.
	CacheTTL time.Duration `yaml:"cache_ttl" range:"1s..1h"`
	// Wrong passwords of one user in a minute; after that the user's further ones
	// get 429 unseen, but for one that was right in the last hour. 0: any number.
	WrongPerUser int `yaml:"wrong_per_user" range:"0..10000"`
	// Wrong passwords from one client address (IPv6: from one /64) in a minute;
	// after that further ones get 429 unseen. 0: any number.
	WrongPerAddress int `yaml:"wrong_per_address" range:"0..1000000"`
	// Passwords that are hashed at once, of users whose password was right in the
	// last hour, and as many of others. Each takes 19 MiB and some 40 ms of a
	// processor. The others wait, and get 503 after a second.
	HashesAtOnce int `yaml:"hashes_at_once" range:"1..64"`
	// Largest request body that is looked through for a user name and a password,
	// where an API has basic_auth.extract_from_body; a larger one gets 413. It is
	// held in memory for as long as the request takes.
	MaxBody Bytes `yaml:"max_body" range:"1KiB..16MiB"`
}

// Quota holds the settings of quotas and rates.
type Quota struct {
	// While the counter store is away, for quotas and rates alike: local (go on
	// from what this gateway last knew, reconcile after), open (admit), or closed
	// (refuse with 503).
	OnStoreError string `yaml:"on_store_error" oneof:"local open closed" required:"true"`
	// Requests that may wait at the same time because their key is over its rate
	// and has throttle_retry_limit, half of them of one key at most; further ones
	// get 429 at once. 0: none waits.
	MaxWaiting int `yaml:"max_waiting" range:"0..1000000"`
}

// Monitor holds the settings of who is told how much of a quota is used.
type Monitor struct {
	// Raise the event TriggerExceeded when so much of a quota is used as the
	// settings below or a key's monitor.trigger_limits say, once in each period.
	EnableTriggerMonitors bool `yaml:"enable_trigger_monitors"`
	// Percentage that is told for every quota. 0: only those that keys name.
	GlobalTriggerLimit float64 `yaml:"global_trigger_limit" range:"0..100"`
	// Watch the quotas of keys.
	MonitorUserKeys bool `yaml:"monitor_user_keys"`
	// Watch the quotas of organisations.
	MonitorOrgKeys bool `yaml:"monitor_org_keys"`
}

// Database holds the settings of the admin's PostgreSQL.
type Database struct {
	// PostgreSQL to use, such as postgres://sluice@db.internal/sluice. Empty: `up`
	// runs a private one; `admin` and `migrate` need an address.
	URL secret.Value `yaml:"url" form:"postgres"`
	// Connections of this process.
	MaxConns int `yaml:"max_conns" range:"2..1000"`
	// Longest time for one statement.
	StatementTimeout time.Duration `yaml:"statement_timeout" range:"100ms..10m"`
}

// Postgres holds the settings of the private PostgreSQL that `up` runs.
type Postgres struct {
	// Directory of initdb and postgres. Empty: found on PATH or where
	// distributions put it, newest first.
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
	// Store to use: redis://user:password@host:6379/0, rediss:// for TLS, several
	// servers as redis://one:6379,two:6379, or unix:///path/to/socket. Empty:
	// counters and sessions stay in this process.
	URL secret.Value `yaml:"url" form:"valkey"`
	// User, when it is not in valkey.url.
	Username string `yaml:"username"`
	// Password, when it is not in valkey.url.
	Password secret.Value `yaml:"password"`
	// Name of the master to ask Sentinel for. With a name, the servers of
	// valkey.url are Sentinels.
	SentinelMaster string `yaml:"sentinel_master" form:"name"`
	// User for the Sentinels.
	SentinelUsername string `yaml:"sentinel_username"`
	// Password for the Sentinels.
	SentinelPassword secret.Value `yaml:"sentinel_password"`
	// The servers form a cluster.
	Cluster bool `yaml:"cluster"`
	// Use TLS, as rediss:// does.
	TLS bool `yaml:"tls"`
	// PEM file with the authorities trusted for the store. Empty: the system's.
	CAFile string `yaml:"ca_file"`
	// Time for one exchange with the store; when it passes, the store counts as away.
	Timeout time.Duration `yaml:"timeout" range:"5ms..30s"`
}

// Admin holds the settings of the management side.
type Admin struct {
	// Address of the admin's REST. Beyond loopback it needs admin.insecure.
	Listen string `yaml:"listen" form:"address" required:"true"`
	// Key that seals private keys of certificates in the database, 64 hexadecimal
	// digits (openssl rand -hex 32). Every admin of a database needs the same.
	// Empty: one is made, and kept in data_dir.
	MasterKey secret.Value `yaml:"master_key"`
	// Key that admin.master_key was put in the place of. What it sealed is still
	// read; `sluice secrets rotate` seals that anew, after which this can go.
	FormerMasterKey secret.Value `yaml:"former_master_key"`
	// Permit plain HTTP beyond loopback: something in front terminates TLS.
	Insecure bool `yaml:"insecure"`
	// Networks, as CIDRs, whose X-Forwarded-For is believed: callers behind them are
	// told apart in admin.login_rate and in the audit log. Of others it is ignored.
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	// Failed authentications per minute from one address; further ones get 429.
	LoginRate int `yaml:"login_rate" range:"1..10000"`
	// Objects on one page of a list when the caller does not say.
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
	// Shape of the log on standard error: text, json, or auto (text where people
	// read it on a terminal, else json).
	Format string `yaml:"format" oneof:"auto text json" required:"true"`
	// Where the access log goes, one JSON line per request: stdout, file or off.
	Access string `yaml:"access" oneof:"stdout file off" required:"true"`
	// File of the access log, for log.access file. It is opened again on SIGHUP.
	AccessFile string `yaml:"access_file"`
	// Share of successful requests in the access log. Refusals and errors are
	// always in it; only of the calls that are shed under overload it is one in a
	// hundred.
	SampleOK float64 `yaml:"sample_ok" range:"0..1"`
}
