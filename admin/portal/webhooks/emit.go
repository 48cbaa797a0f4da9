package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// message is the body of a message to a webhook.
type message struct {
	Type      string          `json:"type"`
	Timestamp string          `json:"timestamp"`        // of the event
	API       string          `json:"api_id,omitempty"` // whose stream published it
	Data      json.RawMessage `json:"data"`
	Omitted   bool            `json:"data_omitted,omitempty"`  // Data is too large, and only its id is sent
	Encoding  string          `json:"data_encoding,omitempty"` // see StreamEvent
}

// hookMessage is the body of a message to a URL of the configuration.
type hookMessage struct {
	Event   string          `json:"event"`
	Data    json.RawMessage `json:"data"`
	Omitted bool            `json:"data_omitted,omitempty"`
}

// Emit queues, as part of a transaction, a message for each webhook that subscribes to an
// event, and for the URL and the address that the organisation's configuration has.
// Receivers whose queue is full are skipped.
func (s *Service) Emit(ctx context.Context, tx *store.Tx, e model.Event) error {
	return s.EmitAll(ctx, tx, []model.Event{e})
}

// EmitAll is Emit for events that happen together.
func (s *Service) EmitAll(ctx context.Context, tx *store.Tx, events []model.Event) error {
	type kind struct{ org, developer, event string }
	known := make(map[kind]*receivers)
	for _, e := range events {
		of := kind{e.Org, e.Developer, e.Type}
		if known[of] == nil {
			found, err := s.receiversOf(ctx, tx, e)
			if err != nil {
				return err
			}
			known[of] = found
		}
		if err := s.queueEvent(ctx, tx, e, known[of]); err != nil {
			return err
		}
	}
	return nil
}

// receivers are the receivers of events of one type.
type receivers struct {
	listeners  []store.WebhookListener
	configured model.EventTarget
}

func (s *Service) receiversOf(ctx context.Context, tx *store.Tx, e model.Event) (*receivers, error) {
	listeners, err := tx.WebhooksHearing(ctx, e.Org, e.Developer, e.Type)
	if err != nil {
		return nil, err
	}
	target, err := s.configured(ctx, tx, e)
	return &receivers{listeners, target}, err
}

func (s *Service) queueEvent(ctx context.Context, tx *store.Tx, e model.Event, to *receivers) error {
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
	if err := s.queueForWebhooks(ctx, tx, e, to.listeners, m); err != nil {
		return err
	}
	return s.queueForConfiguration(ctx, tx, e, to.configured, hookMessage{Event: e.Type, Data: data, Omitted: omitted})
}

// maxData bounds the data of an event in a message, in bytes.
const maxData = delivery.MaxPayload - 1<<10

// identity returns the id in data that is too large.
func identity(data []byte) json.RawMessage {
	var known struct {
		ID string `json:"id,omitempty"`
	}
	_ = json.Unmarshal(data, &known) // without an object there is no id
	left, _ := rest.Encode(known)    // a string can always be encoded
	return left
}

func (s *Service) queueForWebhooks(ctx context.Context, tx *store.Tx, e model.Event, listeners []store.WebhookListener, m message) error {
	body, err := rest.Encode(m)
	if err != nil {
		return fmt.Errorf("writing event %s: %w", e.Type, err)
	}
	for _, l := range listeners {
		put := delivery.Message{Org: e.Org, Kind: delivery.Webhook, Target: l.ID, Event: e.Type, Payload: body}
		if l.DeveloperID != nil {
			put.Developer = *l.DeveloperID
		}
		if err := s.queueMessage(ctx, tx, put); err != nil {
			return err
		}
	}
	return nil
}

// queueForConfiguration queues messages to the URL and the address that the configuration
// has for events of the kind.
func (s *Service) queueForConfiguration(ctx context.Context, tx *store.Tx, e model.Event, target model.EventTarget, m hookMessage) error {
	if target.Webhook != "" {
		body, err := rest.Encode(m)
		if err != nil {
			return fmt.Errorf("writing event %s: %w", e.Type, err)
		}
		put := delivery.Message{Org: e.Org, Kind: delivery.Hook, Target: target.Webhook, Event: e.Type, Payload: body}
		if err := s.queueMessage(ctx, tx, put); err != nil {
			return err
		}
	}
	if target.Email == "" {
		return nil
	}
	return s.queueLetter(ctx, tx, model.Letter{Org: e.Org, Kind: model.EventLetter, To: target.Email, Event: e.Type})
}

// queueLetter queues a letter, unless the queue of its address is full.
func (s *Service) queueLetter(ctx context.Context, tx *store.Tx, l model.Letter) error {
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

// configured returns the target that the organisation's configuration has for an event.
func (s *Service) configured(ctx context.Context, tx *store.Tx, e model.Event) (model.EventTarget, error) {
	c, err := s.configuration(ctx, tx, e.Org)
	if err != nil || c == nil {
		return model.EventTarget{}, err
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
	return model.EventTarget{}, nil
}

// configuration returns the configuration of an organisation's portal, or nil.
func (s *Service) configuration(ctx context.Context, tx *store.Tx, org string) (*model.Configuration, error) {
	body, err := tx.PortalConfigurationBody(ctx, org)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := model.Parse[model.Configuration](body)
	if err != nil {
		s.deps.Log.Error("the stored configuration of a portal cannot be read; it is passed over", "org", org, "err", err)
		return nil, nil
	}
	return c, nil
}

// queueMessage queues a message, unless the queue of its target is full.
func (s *Service) queueMessage(ctx context.Context, tx *store.Tx, m delivery.Message) error {
	_, err := s.deps.Queue.Put(ctx, tx, m)
	if errors.Is(err, delivery.ErrFull) {
		s.deps.Log.Warn("an event was not queued: too much waits for its receiver", "kind", m.Kind, "org", m.Org, "event", m.Event)
		return nil
	}
	return err
}
