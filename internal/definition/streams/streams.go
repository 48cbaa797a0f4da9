// Package streams reads the event streams of an API definition: the object
// x-svc-streaming. It checks everything that can be checked without a connection, scripts
// and templates included. The README beside it is the reference of the object.
package streams

import (
	"strings"
	"time"
)

// A Stream takes messages in on one side and gives them out on another. All defaults are
// filled in.
type Stream struct {
	Name       string
	Input      Connector
	Processors []Processor
	Output     Connector
	DeadLetter *DeadLetter // nil: none

	MaxMessageBytes  int
	MaxInFlight      int // messages that are not settled; 1: strict order
	MaxInFlightBytes int
	Retry            Retry // of each output
	DrainTimeout     time.Duration
}

// Retry says how often a message is tried. The pauses double and have full jitter.
type Retry struct {
	MaxAttempts  int // 0: for ever
	Initial, Max time.Duration
}

// A DeadLetter is where messages go that could not be passed on.
type DeadLetter struct {
	Output       Connector
	IncludeError bool
}

// A Connector is one end of a stream. Exactly one of the pointers is set.
type Connector struct {
	Label string // unique in the stream; names metrics and logs
	Path  string // in the stream object, such as output.broker.outputs[1]

	HTTPServerInput  *HTTPServerInput
	HTTPServerOutput *HTTPServerOutput
	WebSocket        *WebSocket
	HTTPPoll         *HTTPPoll // http_client as an input
	HTTPSend         *HTTPSend // http_client as an output
	BrokerInput      *BrokerInput
	BrokerOutput     *BrokerOutput
	Inputs           []Connector // broker as an input
	Outputs          *Outputs    // broker as an output
	PortalWebhook    *PortalWebhook
	Subscribers      *Subscribers // of Topics alone
}

// Subscribers gives messages to clients with a subscription of GraphQL.
type Subscribers struct{}

// PortalWebhooks returns the portal_webhook outputs of a stream, those of its dead letters
// and in brokers included.
func (s *Stream) PortalWebhooks() []*PortalWebhook {
	found := s.Output.portalWebhooks(nil)
	if s.DeadLetter != nil {
		found = s.DeadLetter.Output.portalWebhooks(found)
	}
	return found
}

func (c *Connector) portalWebhooks(found []*PortalWebhook) []*PortalWebhook {
	if c.PortalWebhook != nil {
		found = append(found, c.PortalWebhook)
	}
	if c.Outputs != nil {
		for i := range c.Outputs.Outputs {
			found = c.Outputs.Outputs[i].portalWebhooks(found)
		}
	}
	return found
}

// Kind names the connector that is set, "" for none.
func (c *Connector) Kind() string {
	switch {
	case c.HTTPServerInput != nil, c.HTTPServerOutput != nil:
		return "http_server"
	case c.WebSocket != nil:
		return "websocket_server"
	case c.HTTPPoll != nil, c.HTTPSend != nil:
		return "http_client"
	case c.BrokerInput != nil, c.BrokerOutput != nil:
		return "msgbroker"
	case c.Inputs != nil, c.Outputs != nil:
		return "broker"
	case c.PortalWebhook != nil:
		return "portal_webhook"
	case c.Subscribers != nil:
		return "subscribers"
	}
	return ""
}

// A Template is text with ${! expression } parts of the mapping language; ${ itself is
// written $${.
type Template string

// HasExpressions reports whether the text depends on the message.
func (t Template) HasExpressions() bool { return strings.Contains(string(t), "${!") }

// A Secret is sent to others and never shown.
type Secret string

// HTTPServerInput takes messages from clients of the API.
type HTTPServerInput struct {
	Path         string // below the listen path; "": none
	WSPath       string // the same for WebSocket
	AllowedVerbs []string
	Timeout      time.Duration
	RateLimit    *Rate // nil: none
	ReplyStatus  Template
	ReplyHeaders []Header
}

// A Rate is a number of messages in a time.
type Rate struct {
	Count int
	Per   time.Duration
}

// A Header is one of an HTTP message.
type Header struct {
	Name  string
	Value Template
}

// HTTPServerOutput gives messages to clients of the API.
type HTTPServerOutput struct {
	Path         string // long poll, or what the client asks for if it is the only one written; "": none
	Negotiates   bool   // Path serves event streams and WebSocket as well
	StreamPath   string
	WSPath       string
	AllowedVerbs []string
	Timeout      time.Duration // of a long poll
	Heartbeat    time.Duration
	MaxPending   int // unwritten messages of a client
	WriteTimeout time.Duration
	MaxClients   int
	Resume       bool     // Last-Event-ID
	Event        Template // name of the events; "": none
}

// WebSocket takes messages from clients, or gives messages to them, over WebSocket.
type WebSocket struct {
	Path           string
	Heartbeat      time.Duration
	MaxPending     int
	AllowedOrigins []string
	Subprotocols   []string
	Ack            bool // each message of a client is answered
}

// HTTPRequest is what both directions of http_client, and the http processor, send.
type HTTPRequest struct {
	URL              Template
	Verb             string
	Headers          []Header
	Body             Template // "": the message; of a poll no body
	Timeout          time.Duration
	Retries          int
	RetryPeriod      time.Duration
	MaxRetryBackoff  time.Duration
	BackoffOn        []int // statuses
	DropOn           []int
	SuccessfulOn     []int
	MaxResponseBytes int
	SkipVerify       bool
	BasicUser        string
	BasicPassword    Secret
	Bearer           Secret
}

// HTTPPoll asks a server for messages.
type HTTPPoll struct {
	HTTPRequest
	Period          time.Duration
	DropEmptyBodies bool
	Stream          bool // the answer goes on: a message per line or event
	Reconnect       bool // of a stream that has ended
}

// HTTPSend sends messages to a server.
type HTTPSend struct {
	HTTPRequest
	Interval time.Duration // least time between two; 0: none
}

// A Scheme is the protocol of a message broker.
type Scheme string

// The protocols of message brokers.
const (
	AMQP      Scheme = "amqp"
	Kafka     Scheme = "kafka"
	InProcess Scheme = "inproc"
)

// Servers says which message broker is used.
type Servers struct {
	Scheme     Scheme
	TLS        bool
	SkipVerify bool     // the certificate of the server is not checked
	Addresses  []string // host:port; empty if the scheme is InProcess
	VHost      string   // of AMQP; default "/"
	User       string
	Password   Secret
	ClientID   string
	Exchange   string // of AMQP
}

// BrokerInput takes messages from a message broker.
type BrokerInput struct {
	Servers
	Topics          []string
	ConsumerGroup   string // "": every gateway gets every message from now on
	StartFromOldest bool
	CheckpointLimit int // unsettled messages of a partition
	CommitPeriod    time.Duration
	Retain          *Retain // nil: none

	// Of Kafka, see Topics.
	Balance       string
	OnlyCommitted bool
}

// Retain says how long an AMQP broker keeps messages that were delivered.
type Retain struct {
	MaxAge   time.Duration
	MaxBytes int64
}

// BrokerOutput publishes to a message broker.
type BrokerOutput struct {
	Servers
	Topic          Template
	Key            Template
	MaxInFlight    int
	DropUnroutable bool
}

// A Pattern says which of several outputs take a message.
type Pattern string

// The patterns of outputs.
const (
	FanOut           Pattern = "fan_out"
	FanOutFailFast   Pattern = "fan_out_fail_fast"
	FanOutSequential Pattern = "fan_out_sequential"
	RoundRobin       Pattern = "round_robin"
	Greedy           Pattern = "greedy"
)

// Outputs are several outputs as one.
type Outputs struct {
	Pattern Pattern
	Outputs []Connector
}

// PortalWebhook passes messages to the webhooks of developers.
type PortalWebhook struct {
	EventType string
	PortalURL string
	Secret    Secret
	Data      Template // "": the message
}

// A Processor is one step between input and output. Exactly one of the pointers is set.
type Processor struct {
	Label   string
	Path    string // in the stream object, such as pipeline.processors[0]
	OnError OnError

	Mapping      *string
	Branch       *Branch
	HTTP         *HTTPRequest
	Switch       []Case
	Filter       *string // check
	Split        *Split
	Batch        *Batch
	Log          *Log
	DeadLetter   *Template // reason
	SyncResponse bool
}

// OnError says what becomes of a message that a processor refuses.
type OnError string

// What becomes of a refused message.
const (
	Reject OnError = "reject" // it is tried again, and then dead-lettered
	Pass   OnError = "pass"   // it goes on as it was
	Drop   OnError = "drop"   // it is filtered
)

// Branch runs processors on a copy and folds the result back.
type Branch struct {
	RequestMap string // "": the whole message
	Processors []Processor
	ResultMap  string // "": the message stays as it is
}

// A Case of a switch.
type Case struct {
	Check       string // "": always
	Processors  []Processor
	Fallthrough bool // the processors of the next case run as well
	Continue    bool // the next cases are checked as well
}

// Split makes one message of each item of an array.
type Split struct{ Path string }

// Batch makes one message, an array, of several.
type Batch struct {
	Count    int // 0: unlimited
	Period   time.Duration
	MaxBytes int
}

// Log writes a line to the log of the gateway.
type Log struct {
	Level   string
	Message Template
	Fields  []Header
}
