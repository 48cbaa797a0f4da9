package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/webhooks"
)

// message is what a webhook is sent.
type message struct {
	Type      string          `json:"type"`
	Timestamp string          `json:"timestamp"` // of the event
	Data      json.RawMessage `json:"data"`
	Omitted   bool            `json:"data_omitted,omitempty"` // Data is too large and has but its id
}

// hookMessage is what a URL of the configuration is sent.
type hookMessage struct {
	Event   string          `json:"event"`
	Data    json.RawMessage `json:"data"`
	Omitted bool            `json:"data_omitted,omitempty"`
}

// Emit queues, as a part of a transaction, a message for every webhook that wants
// to be told of an event, and for whom the organisation's configuration names. A
// receiver for which too much waits already is left out.
func (s *Service) Emit(ctx context.Context, tx *store.Tx, e record.Event) error {
	return s.EmitAll(ctx, tx, []record.Event{e})
}

// EmitAll is Emit for events that happen together.
func (s *Service) EmitAll(ctx context.Context, tx *store.Tx, events []record.Event) error {
	type kind struct{ org, developer, event string }
	known := make(map[kind]*audience)
	for _, e := range events {
		of := kind{e.Org, e.Developer, e.Type}
		if known[of] == nil {
			found, err := s.audienceOf(ctx, tx, e)
			if err != nil {
				return err
			}
			known[of] = found
		}
		if err := s.tell(ctx, tx, e, known[of]); err != nil {
			return err
		}
	}
	return nil
}

// An audience is who is told of events of one kind.
type audience struct {
	listeners  []webhooks.Listener
	configured record.EventTarget
}

func (s *Service) audienceOf(ctx context.Context, tx *store.Tx, e record.Event) (*audience, error) {
	listeners, err := webhooks.Hearing(ctx, tx, e.Org, e.Developer, e.Type)
	if err != nil {
		return nil, err
	}
	target, err := s.configured(ctx, tx, e)
	return &audience{listeners, target}, err
}

func (s *Service) tell(ctx context.Context, tx *store.Tx, e record.Event, to *audience) error {
	if len(to.listeners) == 0 && to.configured.Webhook == "" && to.configured.Email == "" {
		return nil
	}
	data, err := rest.Encode(e.Data)
	if err != nil {
		return fmt.Errorf("writing event %s: %w", e.Type, err)
	}
	omitted := len(data) > maxData
	if omitted {
		data = identity(data)
	}
	m := message{Type: e.Type, Timestamp: s.deps.Now().UTC().Format(time.RFC3339Nano), Data: data, Omitted: omitted}
	if err := s.tellWebhooks(ctx, tx, e, to.listeners, m); err != nil {
		return err
	}
	return s.tellConfigured(ctx, tx, e, to.configured, hookMessage{Event: e.Type, Data: data, Omitted: omitted})
}

// maxData bounds what a message says of an event, in bytes.
const maxData = delivery.MaxPayload - 1<<10

// identity is what remains of data that is too large: its id.
func identity(data []byte) json.RawMessage {
	var known struct {
		ID string `json:"id,omitempty"`
	}
	_ = json.Unmarshal(data, &known) // what is no object has no id
	left, _ := rest.Encode(known)    // a text always can be written
	return left
}

func (s *Service) tellWebhooks(ctx context.Context, tx *store.Tx, e record.Event, listeners []webhooks.Listener, m message) error {
	body, err := rest.Encode(m)
	if err != nil {
		return fmt.Errorf("writing event %s: %w", e.Type, err)
	}
	for _, l := range listeners {
		put := delivery.Message{Org: e.Org, Kind: delivery.Webhook, Target: l.ID, Event: e.Type, Payload: body}
		if l.DeveloperID != nil {
			put.Developer = *l.DeveloperID
		}
		if err := s.put(ctx, tx, put); err != nil {
			return err
		}
	}
	return nil
}

// tellConfigured tells the URL and the address that the configuration has for
// events of the kind.
func (s *Service) tellConfigured(ctx context.Context, tx *store.Tx, e record.Event, target record.EventTarget, m hookMessage) error {
	if target.Webhook != "" {
		body, err := rest.Encode(m)
		if err != nil {
			return fmt.Errorf("writing event %s: %w", e.Type, err)
		}
		put := delivery.Message{Org: e.Org, Kind: delivery.Hook, Target: target.Webhook, Event: e.Type, Payload: body}
		if err := s.put(ctx, tx, put); err != nil {
			return err
		}
	}
	if target.Email == "" {
		return nil
	}
	return s.write(ctx, tx, record.Letter{Org: e.Org, Kind: record.EventLetter, To: target.Email, Event: e.Type})
}

// write queues a letter, unless too much waits for its address.
func (s *Service) write(ctx context.Context, tx *store.Tx, l record.Letter) error {
	if s.deps.Letters == nil {
		return nil
	}
	err := s.deps.Letters.Put(ctx, tx, l)
	if errors.Is(err, delivery.ErrFull) {
		s.deps.Log.Warn("a letter was not queued: too much waits for its address", "org", l.Org, "event", l.Event)
		return nil
	}
	return err
}

// configured returns whom the organisation's configuration names for events of
// the kind.
func (s *Service) configured(ctx context.Context, tx *store.Tx, e record.Event) (record.EventTarget, error) {
	c, err := s.configuration(ctx, tx, e.Org)
	if err != nil || c == nil {
		return record.EventTarget{}, err
	}
	kind, _, _ := strings.Cut(e.Type, ".")
	switch kind {
	case "api_event":
		return c.Events.API, nil
	case "key_event":
		return c.Events.Key, nil
	case "key_request_event":
		return c.Events.KeyRequest, nil
	}
	return record.EventTarget{}, nil
}

// configuration returns an organisation's, or nil when there is none.
func (s *Service) configuration(ctx context.Context, tx *store.Tx, org string) (*record.Configuration, error) {
	body, err := webhooks.ConfigurationOf(ctx, tx, org)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := record.Parse[record.Configuration](body)
	if err != nil {
		s.deps.Log.Error("the stored configuration of a portal cannot be read; it is passed over", "org", org, "err", err)
		return nil, nil
	}
	return c, nil
}

// put queues a message, unless too much waits for its target.
func (s *Service) put(ctx context.Context, tx *store.Tx, m delivery.Message) error {
	_, err := s.deps.Queue.Put(ctx, tx, m)
	if errors.Is(err, delivery.ErrFull) {
		s.deps.Log.Warn("an event was not queued: too much waits for its receiver", "kind", m.Kind, "org", m.Org, "event", m.Event)
		return nil
	}
	return err
}
