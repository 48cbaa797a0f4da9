// Package stream is the vocabulary of event streams: the message, its settlement, the
// demand that flows against it, and what connectors are. Connectors are in packages
// below; gateway/stream/engine puts streams together and runs them.
package stream

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/mapping"
)

// A Message is one unit of data on its way. Whoever holds it may read it; what changes it
// changes a copy.
type Message struct {
	ID      string    // from the source, or a new UUIDv7
	Body    []byte    // never written to
	Meta    []Meta    // names are lower-case
	Key     []byte    // messages with the same key keep their order; nil: none
	At      time.Time // when the source took it in
	Attempt int       // deliveries of this message so far, 1 at first
	Reply   *Reply    // where the sender waits for an answer; nil: it does not

	doc atomic.Pointer[mapping.Doc]
}

// Meta is one value of metadata.
type Meta struct{ Name, Value string }

// A Reply is an answer for the sender of a message. Copies of the message share it.
type Reply struct{ message atomic.Pointer[Message] }

// Set sets the answer.
func (r *Reply) Set(m *Message) { r.message.Store(m) }

// Message returns the answer, or nil if there is none.
func (r *Reply) Message() *Message { return r.message.Load() }

// Doc returns the message as a document of the mapping language, decoded at most once. It
// must not be changed.
func (m *Message) Doc() *mapping.Doc {
	if d := m.doc.Load(); d != nil {
		return d
	}
	d := mapping.NewDoc(m.Body)
	for _, one := range m.Meta {
		d.SetMeta(one.Name, one.Value)
	}
	if !m.doc.CompareAndSwap(nil, d) {
		return m.doc.Load()
	}
	return d
}

// With returns the message with the body and the metadata of a document, which is not
// changed any more. It fails if the document cannot be encoded.
func (m *Message) With(d *mapping.Doc) (*Message, error) {
	body, err := d.Bytes()
	if err != nil {
		return nil, err
	}
	with := &Message{ID: m.ID, Body: body, Key: m.Key, At: m.At, Attempt: m.Attempt, Reply: m.Reply}
	d.EachMeta(func(name, value string) {
		with.Meta = append(with.Meta, Meta{strings.ToLower(name), value})
	})
	slices.SortFunc(with.Meta, func(a, b Meta) int { return strings.Compare(a.Name, b.Name) })
	with.doc.Store(d)
	return with, nil
}

// Value returns a value of metadata, "" for none.
func (m *Message) Value(name string) string {
	for _, one := range m.Meta {
		if one.Name == name {
			return one.Value
		}
	}
	return ""
}

// Size returns the bytes that a message is charged to budgets.
func (m *Message) Size() int {
	n := len(m.Body) + len(m.Key)
	for _, one := range m.Meta {
		n += len(one.Name) + len(one.Value)
	}
	return n
}

// A Settle is called once for a message, with nil when every output that must take it has
// taken it. It is called by any goroutine and does not block.
type Settle func(err error)

// A Flow is what takes the messages of an input: processors and outputs.
type Flow interface {
	// Demand is on while messages can be taken.
	Demand() *Demand

	// Take passes a message through the processors to the outputs, on the goroutine that
	// calls it. It returns false, and does not call settle, if the message cannot be taken
	// now; the input waits for demand then.
	Take(m *Message, settle Settle) bool
}

// An Input takes messages from a source. The methods are called once, in this order.
type Input interface {
	// Start has the input pass messages to a flow while that has demand. It does not wait
	// for a connection.
	Start(to Flow)

	// Stop ends fetching. It returns when nothing will be passed on any more, or when ctx
	// ends. What is not settled may still be settled.
	Stop(ctx context.Context)

	// Close releases connections and lets go of what is not settled, so that the source may
	// hand it out again.
	Close()
}

// An Output gives messages to a peer.
type Output interface {
	// Demand is on while messages can be taken.
	Demand() *Demand

	// Write takes a message, also without demand, and does not wait for the peer. settle is
	// called when the peer has it, or cannot have it: its error has a Class. Trying again
	// is up to the caller.
	Write(m *Message, settle Settle)

	// Close ends the output. What is not settled is settled with an error.
	Close(ctx context.Context)
}

// A Site is where a connector is: what it needs of its stream and of the gateway.
type Site struct {
	Org, API, Stream string
	Label            string // of the connector
	MaxMessageBytes  int
	MaxInFlight      int
	Log              *slog.Logger
	State            *State // of the connector
	Dial             Dialer // guarded

	// HTTP returns what makes calls by HTTP with Dial. Connectors share its connections; nil:
	// each has its own.
	HTTP func(skipVerify bool) http.RoundTripper
}

// A Dialer connects to an address that the configuration names, if it may be called.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)
