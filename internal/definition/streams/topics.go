package streams

import (
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Topics are those of a message broker that subscriptions of a data graph get the messages
// of. Texts are as definitions have them.
type Topics struct {
	Name           string // of the data source
	Addresses      []string
	Topics         []string
	Group          string
	ClientID       string
	FromOldest     bool
	User, Password string

	// Of Kafka.
	Balance       string // of the partitions of a group: range, roundrobin or sticky; "": the broker's members agree on one
	OnlyCommitted bool   // messages of transactions are taken once these are committed
}

// Limits of the streams of topics. A message must fit into one event of a subscription.
const (
	topicMessage  = 1<<20 - 64 // bytes
	topicInFlight = 256
)

// Stream returns the stream that gives messages to subscribers, and what is wrong with the
// texts, with paths in the configuration of the source such as broker_addresses[0].
func (t *Topics) Stream(o Options) (*Stream, []object.Fault) {
	r := &reader{options: o}
	in := &BrokerInput{
		Servers: Servers{ClientID: t.ClientID, Exchange: defaultExchange}, Topics: t.Topics, ConsumerGroup: t.Group, StartFromOldest: t.FromOldest,
		CheckpointLimit: 1024, CommitPeriod: time.Second, Balance: t.Balance, OnlyCommitted: t.OnlyCommitted,
	}
	if in.ClientID == "" {
		in.ClientID = defaultClient
	}
	r.topicServers(t, &in.Servers)
	if len(t.Topics) == 0 {
		r.faultf("topics", "is required: at least one topic")
	}
	r.faults.Count("topics", len(t.Topics), maxTopics)
	r.checkTopics("topics", in, "group_id")
	r.checkLength("group_id", t.Group, 128)
	r.checkLength("client_id", t.ClientID, 255)
	return &Stream{
		Name:  "graphql/" + t.Name,
		Input: Connector{Label: "topics", Path: "config", BrokerInput: in}, Output: Connector{Label: "subscribers", Path: "root_fields", Subscribers: new(Subscribers)},
		MaxMessageBytes: topicMessage, MaxInFlight: topicInFlight, MaxInFlightBytes: 4 << 20,
		Retry: Retry{MaxAttempts: 5, Initial: 100 * time.Millisecond, Max: 10 * time.Second}, DrainTimeout: time.Second,
	}, r.faults
}

func (r *reader) topicServers(t *Topics, s *Servers) {
	const at = "broker_addresses"
	if len(t.Addresses) == 0 {
		r.faultf(at, "is required, such as kafka://broker.example:9092; inproc:// is the broker in the gateway")
	}
	r.faults.Count(at, len(t.Addresses), maxAddresses)
	for i, text := range t.Addresses {
		r.address(object.Item(at, i), text, s)
	}
	if s.Scheme == AMQP && s.VHost == "" {
		s.VHost = "/"
	}
	switch {
	case t.User == "" && t.Password == "":
	case t.User == "":
		r.faultf("sasl.user", "is required beside password")
	case s.Scheme == InProcess:
		r.faultf("sasl.enable", "must be false: inproc:// has no connections")
	case s.User != "":
		r.faultf("sasl.enable", "must be false beside credentials in broker_addresses")
	default:
		s.User, s.Password = t.User, Secret(t.Password)
	}
	if s.Scheme == AMQP || s.Scheme == InProcess {
		if t.Balance != "" {
			r.faultf("balance_strategy", "is of Kafka; leave it out")
		}
		if t.OnlyCommitted {
			r.faultf("isolation_level", "is of Kafka; leave it out")
		}
	}
}

func (r *reader) checkLength(at, text string, most int) {
	if len(text) > most {
		r.faultf(at, "has %d bytes; at most %d are allowed", len(text), most)
	}
}
