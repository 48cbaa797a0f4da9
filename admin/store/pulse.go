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
