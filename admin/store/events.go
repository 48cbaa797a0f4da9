package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// An EventSource is an API whose streams send events to webhooks of developers.
type EventSource struct {
	Org  string
	Open bool // every developer may call the API: it is keyless, and offered in the catalogue

	// Revision is that of the configuration, which the rights of keys depend on as well.
	Revision int64

	// Edition changes with the definition and the secrets that it refers to.
	Edition EventEdition
}

// An EventEdition is comparable.
type EventEdition struct {
	Version, Secrets int64
	Created, Updated int64 // nanoseconds since 1970
}

// EventSource returns an API of any organisation, or ErrNotFound.
func (s *Store) EventSource(ctx context.Context, api string) (EventSource, error) {
	row, err := s.queries.EventSource(ctx, api)
	return EventSource{
		Org: row.OrgID, Open: row.Open, Revision: row.Revision,
		Edition: EventEdition{row.Version, row.Secrets, row.CreatedAt.UnixNano(), row.UpdatedAt.UnixNano()},
	}, translate(err)
}

// An EventListener is a webhook of a developer that subscribes to an event, and a key that
// may give the developer access to the API. Version and UpdatedAt are of the key.
type EventListener = db.EventListenersRow

// EventListeners returns the webhooks that subscribe to a type of events of an API, several
// times where several keys name the API or have a policy that does.
func (s *Store) EventListeners(ctx context.Context, org, api, event string) ([]EventListener, error) {
	policies, err := s.PoliciesNaming(ctx, org, api)
	if err != nil {
		return nil, err
	}
	rows, err := s.queries.EventListeners(ctx, db.EventListenersParams{OrgID: org, API: api, Event: event, Policies: policies})
	return rows, translate(err)
}

// OpenEventListeners returns the webhooks that subscribe to a type of events of an API that
// every developer may call. The listeners have no keys.
func (s *Store) OpenEventListeners(ctx context.Context, org, event string) ([]EventListener, error) {
	rows, err := s.queries.OpenEventListeners(ctx, db.OpenEventListenersParams{OrgID: org, Event: event})
	all := make([]EventListener, 0, len(rows))
	for _, row := range rows {
		all = append(all, EventListener{ID: row.ID, DeveloperID: row.DeveloperID})
	}
	return all, translate(err)
}

// DeveloperKeyHashes returns keys of a developer that have not ended, those of OAuth
// clients included; at most some.
func (s *Store) DeveloperKeyHashes(ctx context.Context, org, developer string, most int) ([]string, error) {
	hashes, err := s.queries.DeveloperKeyHashes(ctx, db.DeveloperKeyHashesParams{OrgID: org, DeveloperID: developer, Max: Page{Max: most}.Limit()})
	return hashes, translate(err)
}

// KeysByHash returns those of an organisation's keys that exist.
func (s *Store) KeysByHash(ctx context.Context, org string, hashes []string) ([]Key, error) {
	rows, err := s.queries.KeysByHash(ctx, db.KeysByHashParams{OrgID: org, Hashes: orEmpty(hashes)})
	return rows, translate(err)
}

// An EventAPI is an API whose streams send events to webhooks of developers.
type EventAPI = db.EventAPIsRow

// EventAPIs returns those of an organisation, at most 1,000, by name.
func (s *Store) EventAPIs(ctx context.Context, org string) ([]EventAPI, error) {
	rows, err := s.queries.EventAPIs(ctx, db.EventAPIsParams{OrgID: org, Max: Page{Max: 1000}.Limit()})
	return rows, translate(err)
}

// NewEvent is an event that is to be queued for webhooks of developers: for each a delivery
// with an id of its own, ordered by these.
type NewEvent = db.PutEventDeliveriesParams

// A QueuedEvent says what became of a NewEvent: how many deliveries were queued, how many
// were known already, and the webhooks for which there was no room.
type QueuedEvent = db.PutEventDeliveriesRow

// PutEvent queues an event, which is announced with the transaction's commit.
func (tx *Tx) PutEvent(ctx context.Context, n NewEvent) (QueuedEvent, error) {
	done, err := tx.Queries.PutEventDeliveries(ctx, n)
	if err != nil || done.Queued == 0 {
		return done, err
	}
	return done, tx.Queries.AnnounceDeliveries(ctx)
}

// MissEvents counts an event that was not queued for webhooks, and returns those whose owner
// is to get a letter about it.
func (tx *Tx) MissEvents(ctx context.Context, org string, webhooks []string) (due []string, err error) {
	return tx.Queries.MissEvents(ctx, db.MissEventsParams{OrgID: org, IDs: webhooks})
}
