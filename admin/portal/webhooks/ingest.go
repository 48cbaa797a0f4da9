package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/webhooksign"
)

// EventsPath is where portal_webhook outputs of streams post messages to. It is below the
// path of the pages, which proxies pass on.
const EventsPath = "/portal/events"

// Bounds of a message of a stream.
const (
	maxEvent   = delivery.MaxPayload + 1<<10 // bytes of the body
	maxEventID = 256
	clockSkew  = 5 * time.Minute
)

// StreamEvent is the body of a message of a portal_webhook output.
type StreamEvent struct {
	// Type of the event: event_type of the output.
	Type string `json:"type"`
	// Time at which the gateway took the message in (RFC 3339).
	Timestamp string `json:"timestamp" format:"date-time"`
	// Id of the API whose stream sends the message.
	API string `json:"api_id"`
	// Name of the stream.
	Stream string `json:"stream"`
	// The message: JSON as it is, other text as a string.
	// Example: {"order": 7}
	Data json.RawMessage `json:"data"`
	// base64 where data is the text of bytes that are neither JSON nor text; left out otherwise.
	Encoding string `json:"data_encoding,omitempty"`
}

// Taken says what became of a message of a stream.
type Taken struct {
	// Webhooks that it was queued for.
	Queued int64 `json:"queued"`
	// Webhooks that it had been queued for before.
	Repeated int64 `json:"repeated"`
	// Webhooks that too much waits for.
	Missed int `json:"missed"`
}

// newStreamEvents returns the counter of messages of streams.
func newStreamEvents() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_portal_events_total",
		Help: "Messages that portal_webhook outputs of streams posted: queued for webhooks, repeated ones, unwanted as no webhook subscribes, and refused ones.",
	}, []string{"result"})
}

// Metrics returns the metrics of messages of streams.
func (s *Service) Metrics() prometheus.Collector { return s.events }

func (s *Service) ingestRoute() rest.Route {
	return rest.Route{
		Method: "POST", Path: EventsPath, Summary: "Take a message of a portal_webhook output, signed with its secret, and queue it for the webhooks of developers who may call the API. It is taken once, however often it is sent",
		Tag: "Webhooks", Role: rest.Anyone, Body: StreamEvent{}, Status: fasthttp.StatusAccepted, Reply: rest.Envelope{}, Wrong: []int{400, 401, 413, 415}, Handle: s.ingest,
	}
}

func (s *Service) ingest(ctx context.Context, c *rest.Call) (any, error) {
	taken, err := s.takeEvent(ctx, c)
	if fault, ok := errors.AsType[*rest.Fault](err); ok && fault.Status < 500 {
		s.events.WithLabelValues("refused").Inc()
	}
	if err != nil {
		return nil, err
	}
	switch {
	case taken.Queued > 0:
		s.events.WithLabelValues("queued").Inc()
	case taken.Repeated > 0:
		s.events.WithLabelValues("repeated").Inc()
	case taken.Missed == 0:
		s.events.WithLabelValues("unwanted").Inc()
	}
	return rest.Done("Accepted", taken), nil
}

// takeEvent takes a message. Nothing of it is believed before its signature was checked;
// the API that it names says which secrets count.
func (s *Service) takeEvent(ctx context.Context, c *rest.Call) (*Taken, error) {
	m, err := s.signedMessage(c)
	if err != nil {
		return nil, err
	}
	e, err := eventOf(m.body)
	if err != nil {
		return nil, err
	}
	src, err := s.sourceOf(ctx, e.API)
	if err != nil {
		return nil, err
	}
	if src == nil || !m.signatures.Match(src.keys(e, s.deps.Now()), m.id, m.timestamp, m.body) {
		return nil, rest.Refuse(fasthttp.StatusUnauthorized, "The signature is not that of a portal_webhook output with this api_id, stream and type")
	}
	payload, err := rest.Encode(message{Type: e.Type, Timestamp: e.Timestamp, API: e.API, Data: e.Data, Encoding: e.Encoding})
	if err != nil {
		return nil, fmt.Errorf("writing event %s: %w", e.Type, err)
	}
	if len(payload) > delivery.MaxPayload {
		return nil, tooLarge()
	}
	to, err := s.listeners(ctx, src, e)
	if err != nil || len(to) == 0 {
		return new(Taken), err
	}
	return s.queueStreamEvent(ctx, delivery.Event{Org: src.Org, Type: e.Type, Source: sourceID(e, m.id), Payload: payload, To: to})
}

// sourceID tells the event of a message from all others: outputs may get messages with the
// same id.
func sourceID(e *StreamEvent, id string) string {
	return e.API + "\n" + e.Stream + "\n" + e.Type + "\n" + id
}

func tooLarge() error {
	return rest.Refuse(fasthttp.StatusRequestEntityTooLarge, fmt.Sprintf("The message is larger than %d bytes", delivery.MaxPayload))
}

// A signedMessage is a message whose signatures were not checked yet.
type signedMessage struct {
	id, timestamp string
	signatures    webhooksign.Signatures
	body          []byte // of the request
}

func (s *Service) signedMessage(c *rest.Call) (*signedMessage, error) {
	head := &c.HTTP.Request.Header
	m := &signedMessage{
		id: string(head.Peek(webhooksign.IDHeader)), timestamp: string(head.Peek(webhooksign.TimestampHeader)), body: c.HTTP.Request.Body(),
	}
	if len(m.body) > maxEvent {
		return nil, tooLarge()
	}
	if m.id == "" || len(m.id) > maxEventID || !rest.Printable(m.id) {
		return nil, rest.BadRequest(fmt.Sprintf("%s: must be printable text of 1 to %d bytes", webhooksign.IDHeader, maxEventID))
	}
	seconds, err := strconv.ParseInt(m.timestamp, 10, 64)
	if err != nil {
		return nil, rest.BadRequest(webhooksign.TimestampHeader + ": must be the seconds since 1970")
	}
	if age := s.deps.Now().Sub(time.Unix(seconds, 0)); age > clockSkew || age < -clockSkew {
		return nil, rest.Refuse(fasthttp.StatusUnauthorized, webhooksign.TimestampHeader+": is more than 5 minutes off; compare the clocks of the gateway and of the admin")
	}
	if m.signatures, err = webhooksign.Parse(string(head.Peek(webhooksign.SignatureHeader))); err != nil {
		return nil, rest.Refuse(fasthttp.StatusUnauthorized, webhooksign.SignatureHeader+": "+err.Error())
	}
	return m, nil
}

// eventOf reads a message. Members that are not known are passed over: gateways may be newer.
func eventOf(body []byte) (*StreamEvent, error) {
	e := new(StreamEvent)
	if err := json.Unmarshal(body, e); err != nil {
		return nil, rest.BadRequest("The body must be an object with type, timestamp, api_id, stream and data, as portal_webhook outputs send it")
	}
	for _, one := range []struct{ name, text string }{{"type", e.Type}, {"api_id", e.API}, {"stream", e.Stream}} {
		if one.text == "" || len(one.text) > rest.MaxText || !rest.Printable(one.text) {
			return nil, rest.BadRequest(fmt.Sprintf("%s: must be printable text of 1 to %d bytes", one.name, rest.MaxText))
		}
	}
	if _, err := time.Parse(time.RFC3339, e.Timestamp); err != nil {
		return nil, rest.BadRequest("timestamp: must be a time of RFC 3339")
	}
	if len(e.Data) == 0 {
		return nil, rest.BadRequest("data: is missing")
	}
	if e.Encoding != "" && e.Encoding != "base64" {
		return nil, rest.BadRequest("data_encoding: must be base64, or left out")
	}
	return e, nil
}

// queueStreamEvent queues an event for its receivers, in one transaction.
func (s *Service) queueStreamEvent(ctx context.Context, e delivery.Event) (*Taken, error) {
	taken := new(Taken)
	err := s.deps.Store.InTx(ctx, func(tx *store.Tx) error {
		done, err := s.deps.Queue.PutEvent(ctx, tx, e)
		if err != nil {
			return err
		}
		*taken = Taken{Queued: done.Queued, Repeated: done.Known, Missed: len(done.FullTargets)}
		if taken.Missed == 0 {
			return nil
		}
		return s.miss(ctx, tx, e.Org, done.FullTargets)
	})
	return taken, err
}

// missedReason is why events are missed, for the owner of a webhook.
const missedReason = "too much waits for it already; events of streams that happen until there is room again are not sent to it"

// miss counts an event for webhooks for which there was no room, and notifies their owners
// once a day.
func (s *Service) miss(ctx context.Context, tx *store.Tx, org string, webhooks []string) error {
	due, err := tx.MissEvents(ctx, org, webhooks)
	if err != nil {
		return err
	}
	for _, id := range due {
		hook, err := tx.LockWebhook(ctx, org, id)
		if err != nil {
			return err
		}
		s.deps.Log.Warn("events of streams are not queued for a webhook: too much waits for it", "webhook", id, "org", org)
		if err := s.notifyOwner(ctx, tx, &hook, notice{model.WebhookMissed, missedReason}); err != nil {
			return err
		}
	}
	return nil
}
