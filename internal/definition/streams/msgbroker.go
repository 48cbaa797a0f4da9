package streams

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// brokerHints are about fields of msgbroker that users of comparable engines know.
var brokerHints = map[string]string{
	"seed_brokers":        "write addresses",
	"urls":                "write addresses",
	"queue":               "write topics and consumer_group: queues are declared by the gateway",
	"queue_declare":       "queues are declared by the gateway; remove it",
	"bindings_declare":    "queues are bound by the gateway; write topics",
	"exchange_declare":    "the exchange is declared by the gateway; remove it",
	"prefetch_count":      "write checkpoint_limit",
	"auto_ack":            "messages are acknowledged when all outputs have them; remove it",
	"ack_wait":            "remove it",
	"partitioner":         "write key: messages with the same key go to one partition",
	"persistent":          "messages are always persistent; remove it",
	"mandatory":           "write unroutable",
	"batching":            "use the processor batch",
	"compression":         "remove it",
	"idempotent_write":    "messages are always written so; remove it",
	"target_version":      "remove it",
	"regexp_topics":       "name the topics",
	"group_id":            "write consumer_group",
	"auto_replay_nacks":   "write retry of the stream; remove it",
	"extract_tracing_map": "remove it",
	"multi_header":        "remove it",
	"metadata":            "metadata is sent as headers already; remove it",
}

const (
	defaultExchange = "svc.streams"
	defaultClient   = "sluice"
)

// servers reads what both directions of msgbroker share.
func (r *reader) servers(f *fields) (s Servers) {
	addresses := f.texts("addresses")
	f.r.faults.Count(r.full(f.path("addresses")), len(addresses), maxAddresses)
	s.ClientID = f.text("client_id", defaultClient, 255)
	s.Exchange = f.text("exchange", defaultExchange, 127)
	if s.Exchange == "" {
		f.faultf("exchange", "is empty; leave it out for %s", defaultExchange)
	}
	if len(addresses) == 0 {
		s.Scheme = InProcess
	}
	for i, text := range addresses {
		r.address(object.Item(f.path("addresses"), i), text, &s)
	}
	if s.Scheme == AMQP && s.VHost == "" {
		s.VHost = "/"
	}

	sasl := f.object("sasl")
	user, password := sasl.text(sasl.either("user", "username"), "", 1024), sasl.secret("password")
	switch {
	case user == "" && password == "":
	case s.User != "":
		r.faultf(sasl.at, "stands beside credentials in addresses; leave one of them out")
	case user == "":
		sasl.faultf("user", "is required beside password")
	default:
		s.User, s.Password = user, password
	}
	sasl.unknown(map[string]string{"mechanism": "the gateway chooses it; remove it"})

	tls := f.object("tls")
	if tls.yes("enabled", s.TLS) {
		s.TLS = true
	}
	s.SkipVerify = tls.skipVerify()
	tls.unknown(map[string]string{"root_cas": tlsHints["root_cas"], "root_cas_file": tlsHints["root_cas_file"], "client_certs": tlsHints["client_certs"]})
	if s.SkipVerify && !s.TLS && s.Scheme != "" {
		tls.faultf("skip_verify", "is set without TLS; write amqps:// or kafkas://")
	}
	r.checkInProcess(f, &s)
	return s
}

func (r *reader) checkInProcess(f *fields, s *Servers) {
	if s.Scheme != InProcess {
		return
	}
	for _, name := range []string{"sasl", "tls"} {
		if f.get(name) != nil {
			f.faultf(name, "has no effect with inproc://, which has no connections; leave it out")
		}
	}
}

// A brokerAddress is one of the addresses of a message broker.
type brokerAddress struct {
	scheme   Scheme // "": the gateway's default, which is not known
	tls      bool
	host     string // with port; "" if the scheme is InProcess
	vhost    string
	user     string
	password Secret
}

// address reads an address and adds it to those of s, with which it must agree.
func (r *reader) address(at, text string, s *Servers) {
	a, wrong := r.parseAddress(text)
	if wrong != "" {
		r.faultf(at, "%s", wrong)
		return
	}
	first := len(s.Addresses) == 0 && s.Scheme == ""
	switch {
	case first || s.Scheme == "" && a.scheme != "":
		s.Scheme, s.TLS = a.scheme, a.tls
	case a.scheme != "" && (a.scheme != s.Scheme || a.tls != s.TLS):
		r.faultf(at, "has another scheme than the first address; all of them are of one message broker")
		return
	}
	if a.vhost != "" {
		if s.VHost != "" && s.VHost != a.vhost {
			r.faultf(at, "has another virtual host than the addresses before it")
		}
		s.VHost = a.vhost
	}
	if a.user != "" {
		if s.User != "" && (s.User != a.user || s.Password != a.password) {
			r.faultf(at, "has other credentials than the addresses before it")
		}
		s.User, s.Password = a.user, a.password
	}
	if a.host == "" {
		return
	}
	if slices.Contains(s.Addresses, a.host) {
		r.faultf(at, "stands twice; leave one of them out")
		return
	}
	s.Addresses = append(s.Addresses, a.host)
}

// schemes are those of addresses, with the default port.
var schemes = map[string]struct {
	scheme Scheme
	tls    bool
	port   string
}{
	"amqp": {AMQP, false, "5672"}, "amqps": {AMQP, true, "5671"},
	"kafka": {Kafka, false, "9092"}, "kafkas": {Kafka, true, "9092"},
	"inproc": {InProcess, false, ""},
}

const knownSchemes = "amqp://, amqps://, kafka://, kafkas:// or inproc://"

// parseAddress reads scheme://user:password@host:port/vhost. What it returns as wrong
// never repeats the address, which may hold a password.
func (r *reader) parseAddress(text string) (a brokerAddress, wrong string) {
	name, rest, hasScheme := strings.Cut(text, "://")
	if !hasScheme {
		rest = text
		if text == string(InProcess) {
			return brokerAddress{scheme: InProcess}, ""
		}
		name = string(r.options.DefaultScheme)
	}
	known, ok := schemes[name]
	if !ok && (hasScheme || name != "") {
		return a, "has an unknown scheme; want " + knownSchemes
	}
	a.scheme, a.tls = known.scheme, known.tls
	if a.scheme == InProcess {
		if rest != "" {
			return a, "has a host; the broker in the gateway is inproc:// alone"
		}
		return a, ""
	}
	return a, a.parseRest(rest, known.port)
}

// parseRest reads an address without its scheme.
func (a *brokerAddress) parseRest(rest, port string) (wrong string) {
	if port == "" {
		port = "5672"
	}
	u, err := url.Parse("any://" + rest)
	switch {
	case err != nil || u.Host == "" || !isHost(u.Hostname()):
		return `must be an address such as "amqp://broker.example:5672"; signs in passwords are percent-encoded`
	case u.Port() != "" && !isPort(u.Port()) || strings.HasSuffix(u.Host, ":"):
		return "must have a port from 1 to 65535, or none"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "must not hold a query (?) or a fragment (#); settings are fields of msgbroker"
	}
	a.host = joinPort(u.Hostname(), u.Port(), port)
	if path := strings.TrimPrefix(u.Path, "/"); path != "" {
		if a.scheme == Kafka {
			return "must not hold a path; topics are named in topics or topic"
		}
		a.vhost = path
	}
	if u.User != nil {
		password, _ := u.User.Password()
		a.user, a.password = u.User.Username(), Secret(password)
		if a.user == "" {
			return "has a password without a user"
		}
	}
	return ""
}

func (r *reader) brokerInput(f *fields) *BrokerInput {
	in := &BrokerInput{
		Servers:         r.servers(f),
		Topics:          f.texts("topics"),
		ConsumerGroup:   f.text("consumer_group", "", 128),
		StartFromOldest: f.yes("start_from_oldest", true),
		CheckpointLimit: f.number("checkpoint_limit", 1024, 1, 1<<16),
		CommitPeriod:    f.duration("commit_period", time.Second, 10*time.Millisecond, time.Minute),
	}
	switch n := f.get("topics"); {
	case n == nil || n.kind == '[' && len(n.below) == 0:
		f.faultf("topics", "is empty; name at least one topic")
	case len(in.Topics) > maxTopics:
		f.faultf("topics", "has %d entries; at most %d are allowed", len(in.Topics), maxTopics)
	}
	r.checkTopics(f.path("topics"), in, "consumer_group")
	if n := f.get("topic"); n != nil {
		f.faultf("topic", "is of outputs; write topics, a list")
	}
	if n := f.get("retain"); n != nil {
		in.Retain = r.retain(f, in.Scheme)
	}
	f.unknown(brokerHints)
	return in
}

// checkTopics checks the names of the topics at a path; group names the member with that of
// the consumer group.
func (r *reader) checkTopics(at string, in *BrokerInput, group string) {
	for i, topic := range in.Topics {
		if wrong := topicFault(topic, in.Scheme); wrong != "" {
			r.faultf(object.Item(at, i), "%s", wrong)
		} else if len(in.ConsumerGroup)+len(topic) > 240 {
			r.faultf(object.Item(at, i), "is too long beside %s: both together have at most 240 bytes", group)
		}
	}
}

func (r *reader) retain(f *fields, scheme Scheme) *Retain {
	switch scheme {
	case Kafka:
		f.faultf("retain", "is of AMQP; Kafka keeps messages as its topic is set up")
	case InProcess:
		f.faultf("retain", "is of AMQP; inproc:// does not keep messages that were delivered")
	}
	below := f.object("retain")
	retain := &Retain{
		MaxAge:   below.duration("max_age", 0, time.Second, 3650*24*time.Hour),
		MaxBytes: below.size("max_bytes", 0, 1<<20, 1<<32),
	}
	if retain.MaxAge == 0 && retain.MaxBytes == 0 {
		r.faultf(below.at, "has no bound; write max_age, max_bytes or both")
	}
	below.unknown(nil)
	return retain
}

// topicFault returns what is wrong with the name of a topic, or "".
func topicFault(topic string, scheme Scheme) string {
	switch {
	case topic == "":
		return "is empty"
	case len(topic) > 255:
		return "has more than 255 bytes"
	case strings.ContainsAny(topic, "*#"):
		return `must not hold "*" or "#": it is the name of one topic`
	case scheme == Kafka && (len(topic) > 249 || strings.Trim(strings.ToLower(topic), "abcdefghijklmnopqrstuvwxyz0123456789._-") != ""):
		return `must be at most 249 letters, digits, ".", "_" and "-" with Kafka`
	}
	return ""
}

func (r *reader) brokerOutput(f *fields) *BrokerOutput {
	out := &BrokerOutput{
		Servers:        r.servers(f),
		Topic:          f.template("topic", ""),
		Key:            f.template("key", ""),
		MaxInFlight:    f.number("max_in_flight", 256, 1, 1024),
		DropUnroutable: f.oneOf("unroutable", "error", "drop") == "drop",
	}
	switch {
	case f.get("topics") != nil:
		f.faultf("topics", "is of inputs; write topic, a text")
	case out.Topic == "" && (f.get("topic") == nil || f.get("topic").kind == '"'):
		f.faultf("topic", "is required: the topic that messages are published to")
	case out.Topic != "" && !out.Topic.HasExpressions():
		f.faultIf("topic", topicFault(string(out.Topic), out.Scheme))
	}
	f.unknown(brokerHints)
	return out
}
