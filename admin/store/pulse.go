package store

import (
	"context"
	"strings"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Pulse is what pages follow besides the configuration: what waits to be decided, what
// could not be delivered, at most 1,000 of each, and when calls were last counted (the
// epoch: never).
type Pulse = db.PulseRow

// Pulse returns the pulse of an organisation.
func (s *Store) Pulse(ctx context.Context, org string) (Pulse, error) {
	row, err := s.queries.Pulse(ctx, org)
	return row, translate(err)
}

// Found is an object that a search found.
type Found = db.SearchRow

// Search returns an organisation's objects whose name begins with a text in any case, or
// for some kinds has it anywhere, or whose id it is; at most five of each kind. Users are
// among them if users is set.
func (s *Store) Search(ctx context.Context, org, text string, users bool) ([]Found, error) {
	lower := strings.ToLower(text)
	rows, err := s.queries.Search(ctx, db.SearchParams{OrgID: org, Text: lower, Sent: text, Prefix: LikePrefix(lower), Users: users})
	return rows, translate(err)
}

// APIEvents is the definition of an API that names handlers of events.
type APIEvents = db.EventHandlersRow

// EventHandlers returns the definitions of an organisation's APIs that name handlers of
// events, by name; at most 1,000.
func (s *Store) EventHandlers(ctx context.Context, org string) ([]APIEvents, error) {
	rows, err := s.queries.EventHandlers(ctx, org)
	return rows, translate(err)
}
