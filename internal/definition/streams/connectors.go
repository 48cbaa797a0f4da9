package streams

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// side is where in a stream a connector stands.
type side uint8

const (
	ofInput side = iota
	ofOutput
	ofDeadLetter
)

func (s side) String() string { return [...]string{"input", "output", "dead letter"}[s] }

// connectors are the names of connectors on each side.
func (s side) connectors() []string {
	switch s {
	case ofInput:
		return []string{"http_server", "websocket_server", "http_client", "msgbroker", "broker"}
	case ofOutput:
		return []string{"http_server", "websocket_server", "http_client", "msgbroker", "broker", "portal_webhook"}
	}
	return []string{"http_client", "msgbroker", "broker", "portal_webhook"}
}

// A place is where a connector stands.
type place struct {
	at     string // path in the stream object
	side   side
	depth  int // brokers above it
	stream *Stream
}

// connectorHints are about connectors that users of comparable engines know.
var connectorHints = map[string]string{
	"kafka":            `use msgbroker with addresses such as "kafka://host:9092"`,
	"kafka_franz":      `use msgbroker with addresses such as "kafka://host:9092"`,
	"redpanda":         `use msgbroker with addresses such as "kafka://host:9092"`,
	"amqp_0_9":         `use msgbroker with addresses such as "amqp://host:5672"`,
	"amqp_1":           `use msgbroker with addresses such as "amqp://host:5672", which speaks AMQP 0-9-1`,
	"inproc":           `use msgbroker with addresses ["inproc://"]`,
	"fallback":         "use dead_letter of the stream, or broker with pattern round_robin",
	"retry":            "use retry of the stream",
	"reject":           "use the processor mapping with throw(), which refuses the message",
	"drop":             "use the processor mapping with deleted(), which filters the message",
	"switch":           "use one stream for each output, with the processor filter",
	"dynamic":          "connectors are those of the definition",
	"resource":         "write the connector in place; resources are not shared",
	"stdin":            "streams do not use the machine of the gateway",
	"stdout":           "streams do not use the machine of the gateway",
	"file":             "streams do not use the machine of the gateway",
	"subprocess":       "streams do not use the machine of the gateway",
	"processors":       "write them in pipeline.processors",
	"websocket":        "use websocket_server for clients of the API; there is no WebSocket client",
	"http":             "use http_client to call a server, or http_server for clients of the API",
	"portal_webhook":   "it is an output",
	"sync_response":    "use the processor sync_response",
	"generate":         "use http_client, which polls a server",
	"batched":          "use the processor batch",
	"sequence":         "use broker",
	"read_until":       "use broker",
	"socket_server":    "use http_server or websocket_server",
	"cache":            "there are no caches",
	"http_server":      "clients need not be there to take it; use msgbroker, http_client or portal_webhook",
	"websocket_server": "clients need not be there to take it; use msgbroker, http_client or portal_webhook",
}

func (r *reader) connector(n *node, p place) Connector {
	f := r.object(n, p.at)
	if f == nil {
		return Connector{}
	}
	return r.connectorOf(f, p)
}

// connectorOf reads the connector among the fields of an object.
func (r *reader) connectorOf(f *fields, p place) Connector {
	c := Connector{Path: p.at, Label: r.label(f)}
	if r.connectors++; r.connectors == maxConnectors+1 {
		r.faultf("", "has more than %d connectors", maxConnectors)
	}
	kind, own := r.pick(f, p.side.connectors(), "connector", connectorHints)
	if own == nil {
		return c
	}
	switch kind {
	case "http_server":
		if p.side == ofInput {
			c.HTTPServerInput = r.httpServerInput(own)
		} else {
			c.HTTPServerOutput = r.httpServerOutput(own)
		}
	case "websocket_server":
		c.WebSocket = r.webSocket(own, p.side)
	case "http_client":
		if p.side == ofInput {
			c.HTTPPoll = r.httpPoll(own, p.stream)
		} else {
			c.HTTPSend = r.httpSend(own, p.stream)
		}
	case "msgbroker":
		if p.side == ofInput {
			c.BrokerInput = r.brokerInput(own)
		} else {
			c.BrokerOutput = r.brokerOutput(own)
		}
	case "broker":
		r.broker(own, p, &c)
	case "portal_webhook":
		c.PortalWebhook = r.portalWebhook(own)
	}
	return c
}

// pick returns the one of several names that an object has, and the fields of its value.
// It is nil beside a fault.
func (r *reader) pick(f *fields, names []string, what string, hints map[string]string) (string, *fields) {
	var found []string
	for _, name := range names {
		f.known = append(f.known, name)
		if f.of.member(name) != nil {
			found = append(found, name)
		}
	}
	unknown := f.unknown(hints)
	switch {
	case len(found) > 1:
		remedy := "choose one"
		if what == "connector" {
			remedy += ", or use broker"
		}
		r.faultf(f.at, "has %s %ss (%s); %s", count(len(found)), what, strings.Join(found, ", "), remedy)
		return "", nil
	case len(found) == 0:
		if !unknown {
			r.faultf(f.at, "has no %s; want %s", what, list(names))
		}
		return "", nil
	}
	n, at := f.of.member(found[0]), f.path(found[0])
	switch n.kind {
	case 'n':
		return found[0], &fields{r: r, at: at}
	case '{':
		return found[0], r.object(n, at)
	}
	if what == "processor" {
		return found[0], &fields{r: r, at: at, of: n} // may be text or a list
	}
	return found[0], r.object(n, at)
}

func count(n int) string {
	if n == 2 {
		return "two"
	}
	return strconv.Itoa(n)
}

// httpServerHints are about fields of http_server that users of comparable engines know.
var httpServerHints = map[string]string{
	"address":               "the gateway owns the listener; remove it",
	"cert_file":             "the gateway owns the listener; remove it",
	"key_file":              "the gateway owns the listener; remove it",
	"cors":                  "write CORS of the API; remove it",
	"tls":                   "the gateway owns the listener; remove it",
	"ws_welcome_message":    "remove it",
	"ws_rate_limit_message": "remove it",
	"stream_format":         "clients choose by Accept; remove it",
	"heartbeat_interval":    "write heartbeat",
	"allowed_methods":       "write allowed_verbs",
	"methods":               "write allowed_verbs",
	"extract_headers":       "headers are metadata already; remove it",
	"batching":              "use the processor batch",
}

func (r *reader) httpServerInput(f *fields) *HTTPServerInput {
	in := &HTTPServerInput{
		AllowedVerbs: f.verbs("allowed_verbs", "POST"),
		Timeout:      f.duration("timeout", 5*time.Second, time.Millisecond, 10*time.Minute),
		RateLimit:    r.rateLimit(f),
	}
	if f.get("path") == nil && f.get("ws_path") == nil {
		in.Path, in.WSPath = "/post", "/post/ws"
	} else {
		in.Path, in.WSPath = f.route("path"), f.route("ws_path")
	}
	r.addRoutes(f, in.Routes()...)

	reply := f.object("sync_response")
	in.ReplyStatus, in.ReplyHeaders = r.replyStatus(reply), reply.headers("headers")
	reply.unknown(map[string]string{"metadata_headers": "name the headers in sync_response.headers, with templates"})
	f.unknown(httpServerHints)
	return in
}

// replyStatus reads a template that gives a status, which may be written as a number.
func (r *reader) replyStatus(f *fields) Template {
	n := f.get("status")
	if n == nil {
		return "200"
	}
	if n.kind != '0' && n.kind != '"' {
		f.faultf("status", "must be a status from 200 to 599, or a template that gives one")
		return "200"
	}
	if !Template(n.text).HasExpressions() {
		if status, err := strconv.Atoi(n.text); err != nil || status < 200 || status > 599 {
			f.faultf("status", "must be a status from 200 to 599, or a template that gives one")
		}
	}
	r.compileTemplate(f.path("status"), n.text)
	return Template(n.text)
}

// rateLimit reads a rate such as "100/1s".
func (r *reader) rateLimit(f *fields) *Rate {
	text := f.text("rate_limit", "", maxTemplate)
	if text == "" {
		return nil
	}
	number, period, ok := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	per, wrong := time.ParseDuration(period)
	if !ok || err != nil || wrong != nil || n < 1 || per < time.Millisecond || per > 24*time.Hour || n > 1e9 {
		f.faultf("rate_limit", `want messages per duration such as "100/1s"; it is not the name of a resource`)
		return nil
	}
	return &Rate{Count: n, Per: per}
}

func (r *reader) httpServerOutput(f *fields) *HTTPServerOutput {
	out := &HTTPServerOutput{
		AllowedVerbs: f.verbs("allowed_verbs", "GET"),
		Timeout:      f.duration("timeout", 5*time.Second, time.Millisecond, 10*time.Minute),
		Heartbeat:    f.duration("heartbeat", 15*time.Second, time.Second, 10*time.Minute),
		MaxPending:   f.number("max_pending", 16, 1, 1024),
		WriteTimeout: f.duration("write_timeout", 10*time.Second, 100*time.Millisecond, 10*time.Minute),
		MaxClients:   f.number("max_clients", 10_000, 1, 1_000_000),
		Resume:       f.yes("resume", false),
		Event:        f.template("event", ""),
	}
	switch written := f.get("path") != nil || f.get("stream_path") != nil || f.get("ws_path") != nil; {
	case !written && out.Resume:
		out.StreamPath = "/get/stream"
	case !written:
		out.Path, out.StreamPath, out.WSPath = "/get", "/get/stream", "/get/ws"
	default:
		out.Path, out.StreamPath, out.WSPath = f.route("path"), f.route("stream_path"), f.route("ws_path")
		out.Negotiates = out.Path != "" && out.StreamPath == "" && out.WSPath == ""
	}
	r.addRoutes(f, out.Routes()...)
	f.unknown(httpServerHints)
	return out
}

func (r *reader) webSocket(f *fields, side side) *WebSocket {
	path := f.either("path", "ws_path")
	ws := &WebSocket{
		Heartbeat:  f.duration("heartbeat", 30*time.Second, time.Second, 10*time.Minute),
		MaxPending: f.number("max_pending", 16, 1, 1024),
	}
	if f.get(path) == nil {
		f.faultf(path, `is required: a path below the listen path, such as "/ws"`)
	} else {
		ws.Path = f.route(path)
	}
	ws.AllowedOrigins, ws.Subprotocols = f.texts("allowed_origins"), f.texts("subprotocols")
	for i, origin := range ws.AllowedOrigins {
		if origin != "*" && !isOrigin(origin) {
			r.faultf(object.Item(f.path("allowed_origins"), i), `must be an origin such as "https://app.example.org", or "*"`)
		}
	}
	for i, name := range ws.Subprotocols {
		if !isSubprotocol(name) {
			r.faultf(object.Item(f.path("subprotocols"), i), "must be the name of a subprotocol: letters, digits and a few signs")
		}
	}
	if side == ofInput {
		ws.Ack = f.oneOf("ack", "none", "json") == "json"
	}
	r.addSocket(f.path(path), ws.Route(side == ofInput))
	f.unknown(httpServerHints)
	return ws
}

// copiesHint is about a field of broker.
const copiesHint = "streams run once in each gateway; leave it out, or write 1"

func (r *reader) broker(f *fields, p place, c *Connector) {
	if n := f.get("copies"); n != nil && (n.kind != '0' || n.text != "1") {
		f.faultf("copies", "is not supported; %s", copiesHint)
	}
	name, all := "outputs", []Connector(nil)
	if p.side == ofInput {
		name = "inputs"
	} else {
		c.Outputs = &Outputs{Pattern: Pattern(f.oneOf("pattern", string(FanOut), string(FanOutFailFast), string(FanOutSequential), string(RoundRobin), string(Greedy)))}
	}
	items := f.items(name)
	switch {
	case p.depth == maxBrokers:
		r.faultf(f.at, "nests deeper than %d brokers", maxBrokers)
		items = nil
	case len(items) == 0 && (f.get(name) == nil || f.get(name).kind == '['):
		f.faultf(name, "is empty; name at least one connector")
	case len(items) > maxList:
		f.faultf(name, "has %d entries; at most %d are allowed", len(items), maxList)
		items = nil
	}
	for i, n := range items {
		all = append(all, r.connector(n, place{object.Item(f.path(name), i), p.side, p.depth + 1, p.stream}))
	}
	if p.side == ofInput {
		c.Inputs = all
	} else {
		c.Outputs.Outputs = all
	}
	f.unknown(map[string]string{"batching": "use the processor batch"})
}

const minWebhookSecret = 16

// portalEvents begin the types of events that the portal itself sends to webhooks.
var portalEvents = []string{"key_request_event.", "key_event.", "api_event.", "webhook_event."}

func (r *reader) portalWebhook(f *fields) *PortalWebhook {
	w := &PortalWebhook{
		EventType: f.required("event_type", `the type of event that developers subscribe to, such as "order.created"`),
		PortalURL: f.required("portal_url", "the URL at which the portal takes events"),
		Data:      f.template("data", ""),
	}
	if w.EventType != "" && !isEventType(w.EventType) {
		f.faultf("event_type", `must be at most 128 of a-z and 0-9 in parts joined by ".", "_" or "-", such as "order.created"`)
	}
	for _, own := range portalEvents {
		if strings.HasPrefix(w.EventType, own) {
			f.faultf("event_type", "must not begin with %q, as events of the portal itself do", own)
		}
	}
	if w.PortalURL != "" {
		r.checkPortalURL(f, w.PortalURL)
	}
	w.Secret = f.secret("secret")
	if len(w.Secret) < minWebhookSecret {
		f.faultf("secret", "must have at least %d bytes: the portal checks the signature of messages by it", minWebhookSecret)
	}
	f.unknown(nil)
	return w
}

func isEventType(name string) bool {
	joint := true
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			joint = false
		case joint || c != '.' && c != '_' && c != '-':
			return false
		default:
			joint = true
		}
	}
	return !joint && len(name) <= 128
}

// texts returns a list of texts.
func (f *fields) texts(name string) (texts []string) {
	for i, n := range f.items(name) {
		at := object.Item(f.path(name), i)
		switch {
		case n.kind != '"':
			f.r.faultf(at, "must be a string, not %s", typeName(n))
		case slices.Contains(texts, n.text):
			f.r.faultf(at, "%s stands twice; leave one of them out", quote(n.text))
		default:
			f.r.checkText(at, n.text, 1024)
			texts = append(texts, n.text)
		}
	}
	return texts
}
