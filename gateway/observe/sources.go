package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Sources are asked at every scrape for what other rooms know. One that is nil
// leaves its metrics out. They must be safe for concurrent use.
type Sources struct {
	Clients       func() Clients
	TLS           func() TLS // nil: it is not spoken
	Upstreams     func() Upstreams
	Targets       func() []Target  // of APIs that have several, or have them checked
	Breakers      func() []Breaker // of APIs that have some
	Answers       func() AnswerCache
	KeyCache      func() KeyCache
	Operations    func() OperationCache
	Overload      func() Overload
	Traces        func() Traces  // nil: none are recorded
	Tunnels       func() Tunnels // connections that have left HTTP
	Throttled     func() int     // requests that wait for the rate of their key
	Counters      func() Store   // where calls are counted
	Keys          func() Store   // where sessions are kept
	ConfigSource  func() string  // where the configuration in force came from, such as "admin" or "disk"
	DroppedEvents func() uint64
	Webhooks      func() Webhooks
	Tokens        func() Tokens
	Passwords     func() Passwords
	Handed        func() Handed // nil: there is no admin to count calls for
}

// Clients are the connections of clients.
type Clients struct {
	Open    int
	Begun   int    // requests that are read, served or answered
	Waiting int    // requests that are not read yet, until others are done
	Refused uint64 // turned away by a limit
	Panics  uint64 // requests that ended in a fault of the gateway's

	Handshakes       int    // of TLS that are being made
	FailedHandshakes uint64 // that came to nothing
}

// Upstreams are the connections to upstreams.
type Upstreams struct{ Open, Idle int }

// KeyCache is what the cache of sessions did.
type KeyCache struct {
	Hits, Misses uint64
	Unpacked     uint64 // made ready for requests from their packed form
	Unknown      uint64 // refused from memory, without a look-up
	Malformed    uint64 // refused by their checksum
	Stale        uint64 // served past their age while the store was away
	Busy         uint64 // not looked up in time, since too many others were
	Entries      int
	Unknowns     int // unknown keys that are remembered
}

// OperationCache is what is known of GraphQL operations, and how often that was
// enough.
type OperationCache struct {
	Hits, Misses uint64
	Refused      uint64 // refused from memory, without an examination

	Valid, Invalid           int // operations that are known
	ValidBytes, InvalidBytes int
}

// Overload is whether more came in than could be served.
type Overload struct {
	Shedding bool
	Delay    time.Duration // that requests have before anybody gets to them
	Limit    float64       // calls per second that may pass, while calls are shed
	Times    uint64        // that shedding began
}

// Traces is what became of spans.
type Traces struct {
	Sent, Failed uint64
	Dropped      uint64 // requests that were not told of, since too many waited
}

// Tunnels are connections that have left HTTP.
type Tunnels struct {
	Open map[string]int // by API
	Cut  uint64         // not allowed any more
}

// Webhooks is what became of messages to webhooks.
type Webhooks struct {
	Sent, Failed, Dropped uint64
	Same                  uint64 // left out in their cool-down
	Waiting               int
}

// Tokens is what is known of JSON Web Tokens.
type Tokens struct {
	Verified uint64 // signatures that were checked
	Entries  int    // tokens in memory
}

// Passwords is what came of passwords that were not known to be right.
type Passwords struct {
	Hashes    uint64 // passwords that were hashed
	Wrong     uint64
	Throttled uint64 // not looked at, since too many were wrong lately
	Busy      uint64 // not looked at in time, since too many others were
	Entries   int    // passwords that are known to be right
}

// Store is how a shared store is.
type Store struct {
	Away    bool
	Outages uint64 // times it went away
	Without uint64 // decisions that were made without it
}

var (
	clientConns    = describe("client_connections", "Open connections of clients.")
	clientRefused  = describe("client_connections_refused_total", "Connections of clients that a limit turned away.")
	clientRequests = describe("client_requests", "Requests of clients that were begun, or wait to be read until others are done.", "state")
	panicsTotal    = describe("panics_total", "Requests that ended in a fault of the gateway's.")
	upstreamConns  = describe("upstream_connections", "Connections to upstreams.", "state")
	keyCacheTotal  = describe("key_cache_total", "Look-ups of keys, by what became of them.", "result")
	keysUnpacked   = describe("key_cache_unpacked_total", "Keys in memory that were packed and made ready for requests.")
	keyCacheSize   = describe("key_cache_entries", "Keys in memory.", "kind")
	operationHits  = describe("graphql_cache_total", "Look-ups of GraphQL operations, by what became of them.", "result")
	operationSize  = describe("graphql_cache_entries", "GraphQL operations in memory.", "kind")
	operationRoom  = describe("graphql_cache_bytes", "Memory that GraphQL operations take.", "kind")
	shedding       = describe("overload_shedding", "Whether calls are refused because there are too many: 1 or 0.")
	overloadDelay  = describe("overload_delay_seconds", "How long requests wait at least until the gateway gets to them.")
	overloadLimit  = describe("overload_limit", "Calls per second that may pass, while calls are refused because there are too many.")
	overloadTimes  = describe("overload_total", "How often calls began to be refused because there were too many.")
	tracesTotal    = describe("trace_spans_total", "Spans for the collector of traces, by what became of them; of dropped requests one each.", "outcome")
	tunnelsOpen    = describe("tunnels", "Connections that have left HTTP, such as those of WebSocket.", "api")
	tunnelsCut     = describe("tunnels_cut_total", "Connections that had left HTTP and were cut: what allowed them was gone.")
	throttled      = describe("throttled_requests", "Requests over the rate of their key that wait for it.")
	storeUp        = describe("store_up", "Whether a shared store answers: 1 or 0.", "store")
	storeOutages   = describe("store_outages_total", "How often a shared store went away.", "store")
	storeWithout   = describe("store_decisions_without_total", "Decisions that were made while a shared store was away.", "store")
	configSource   = describe("config_source", "Where the configuration in force came from; always 1.", "source")
	logDropped     = describe("log_dropped_total", "Access-log lines that could not be written.")
	eventsDropped  = describe("events_dropped_total", "Events that no sink was told of.")
	webhookTotal   = describe("webhook_messages_total", "Messages to webhooks, by what became of them.", "outcome")
	webhooksWait   = describe("webhook_messages_waiting", "Messages that are on their way to webhooks.")
	tokensTotal    = describe("token_verifications_total", "JSON Web Tokens whose signature was checked.")
	tokensKnown    = describe("token_cache_entries", "JSON Web Tokens in memory.")
	passwordHashes = describe("password_hashes_total", "Passwords of users that were hashed.")
	passwordsTotal = describe("password_refusals_total", "Passwords of users that were refused, by why.", "result")
	passwordsKnown = describe("password_cache_entries", "Passwords of users that are known to be right.")
	sourceMetrics  = []*prometheus.Desc{
		clientConns, clientRefused, clientRequests, panicsTotal, upstreamConns, keyCacheTotal, keysUnpacked, keyCacheSize,
		operationHits, operationSize, operationRoom,
		shedding, overloadDelay, overloadLimit, overloadTimes, throttled, tunnelsOpen, tunnelsCut, tracesTotal,
		storeUp, storeOutages, storeWithout, configSource, logDropped, eventsDropped,
		webhookTotal, webhooksWait, tokensTotal, tokensKnown,
		passwordHashes, passwordsTotal, passwordsKnown,
	}
)

// sourceCollector asks the sources.
type sourceCollector struct {
	sources Sources
	access  *AccessLog
}

// Describe implements prometheus.Collector.
func (c *sourceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range sourceMetrics {
		ch <- d
	}
	for _, d := range tlsMetrics {
		ch <- d
	}
	for _, d := range answerMetrics {
		ch <- d
	}
	for _, d := range handedMetrics {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *sourceCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.sources
	if s.Clients != nil {
		v := s.Clients()
		ch <- gauge(clientConns, float64(v.Open))
		ch <- gauge(clientRequests, float64(v.Begun), "begun")
		ch <- gauge(clientRequests, float64(v.Waiting), "waiting")
		ch <- total(clientRefused, v.Refused)
		ch <- total(panicsTotal, v.Panics)
		if s.TLS != nil {
			v.collectTLS(ch)
			s.TLS().collect(ch)
		}
	}
	if s.Upstreams != nil {
		v := s.Upstreams()
		ch <- gauge(upstreamConns, float64(v.Open-v.Idle), "busy")
		ch <- gauge(upstreamConns, float64(v.Idle), "idle")
	}
	s.collectAnswers(ch)
	if s.KeyCache != nil {
		s.KeyCache().collect(ch)
	}
	if s.Operations != nil {
		s.Operations().collect(ch)
	}
	if s.Overload != nil {
		s.Overload().collect(ch)
	}
	if s.Traces != nil {
		s.Traces().collect(ch)
	}
	if s.Tunnels != nil {
		s.Tunnels().collect(ch)
	}
	if s.Throttled != nil {
		ch <- gauge(throttled, float64(s.Throttled()))
	}
	if s.Counters != nil {
		s.Counters().collect(ch, "counters")
	}
	if s.Keys != nil {
		s.Keys().collect(ch, "keys")
	}
	if s.ConfigSource != nil {
		ch <- gauge(configSource, 1, validLabel(s.ConfigSource()))
	}
	if s.DroppedEvents != nil {
		ch <- total(eventsDropped, s.DroppedEvents())
	}
	if s.Webhooks != nil {
		s.Webhooks().collect(ch)
	}
	if s.Tokens != nil {
		v := s.Tokens()
		ch <- total(tokensTotal, v.Verified)
		ch <- gauge(tokensKnown, float64(v.Entries))
	}
	if s.Passwords != nil {
		s.Passwords().collect(ch)
	}
	if s.Handed != nil {
		s.Handed().collect(ch)
	}
	if c.access != nil {
		ch <- total(logDropped, c.access.Dropped())
	}
}

func (t Traces) collect(ch chan<- prometheus.Metric) {
	ch <- total(tracesTotal, t.Sent, "sent")
	ch <- total(tracesTotal, t.Failed, "failed")
	ch <- total(tracesTotal, t.Dropped, "dropped")
}

func (t Tunnels) collect(ch chan<- prometheus.Metric) {
	for api, n := range t.Open {
		ch <- gauge(tunnelsOpen, float64(n), validLabel(api))
	}
	ch <- total(tunnelsCut, t.Cut)
}

func (p Passwords) collect(ch chan<- prometheus.Metric) {
	ch <- total(passwordHashes, p.Hashes)
	ch <- total(passwordsTotal, p.Wrong, "wrong")
	ch <- total(passwordsTotal, p.Throttled, "throttled")
	ch <- total(passwordsTotal, p.Busy, "busy")
	ch <- gauge(passwordsKnown, float64(p.Entries))
}

func (k KeyCache) collect(ch chan<- prometheus.Metric) {
	ch <- total(keyCacheTotal, k.Hits, "hit")
	ch <- total(keyCacheTotal, k.Misses, "miss")
	ch <- total(keyCacheTotal, k.Unknown, "unknown")
	ch <- total(keyCacheTotal, k.Malformed, "malformed")
	ch <- total(keyCacheTotal, k.Stale, "stale")
	ch <- total(keyCacheTotal, k.Busy, "busy")
	ch <- total(keysUnpacked, k.Unpacked)
	ch <- gauge(keyCacheSize, float64(k.Entries), "session")
	ch <- gauge(keyCacheSize, float64(k.Unknowns), "unknown")
}

func (c OperationCache) collect(ch chan<- prometheus.Metric) {
	ch <- total(operationHits, c.Hits, "hit")
	ch <- total(operationHits, c.Misses, "miss")
	ch <- total(operationHits, c.Refused, "refused")
	ch <- gauge(operationSize, float64(c.Valid), "valid")
	ch <- gauge(operationSize, float64(c.Invalid), "refused")
	ch <- gauge(operationRoom, float64(c.ValidBytes), "valid")
	ch <- gauge(operationRoom, float64(c.InvalidBytes), "refused")
}

func (w Webhooks) collect(ch chan<- prometheus.Metric) {
	ch <- total(webhookTotal, w.Sent, "sent")
	ch <- total(webhookTotal, w.Failed, "failed")
	ch <- total(webhookTotal, w.Dropped, "dropped")
	ch <- total(webhookTotal, w.Same, "same")
	ch <- gauge(webhooksWait, float64(w.Waiting))
}

func (o Overload) collect(ch chan<- prometheus.Metric) {
	on := 0.0
	if o.Shedding {
		on = 1
		ch <- gauge(overloadLimit, o.Limit)
	}
	ch <- gauge(shedding, on)
	ch <- gauge(overloadDelay, o.Delay.Seconds())
	ch <- total(overloadTimes, o.Times)
}

func (s Store) collect(ch chan<- prometheus.Metric, name string) {
	up := 1.0
	if s.Away {
		up = 0
	}
	ch <- gauge(storeUp, up, name)
	ch <- total(storeOutages, s.Outages, name)
	ch <- total(storeWithout, s.Without, name)
}
