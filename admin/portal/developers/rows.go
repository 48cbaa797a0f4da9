package developers

import (
	"cmp"
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// developerRow is a developer in a list of rows.
type developerRow struct {
	// Id of the developer.
	ID string `json:"id"`
	// E-mail address of the developer.
	Email string `json:"email"`
	// Whether the developer may not log in.
	Inactive bool `json:"inactive"`
	// Whether the developer has shown that the address is theirs.
	Verified bool `json:"verified"`
	// Time of the last log-in; null: never.
	LastLogin *time.Time `json:"last_login_date"`
	// Number of the developer's keys.
	Keys int64 `json:"key_count"`
	// Version of the object, for If-Match; it grows with each change.
	Version int64 `json:"version"`
	// Time at which the developer was created.
	Created time.Time `json:"date_created"`
	// Time of the last change.
	Updated time.Time `json:"date_updated"`
}

// developerRows is one page of rows.
type developerRows struct {
	// Developers of the page.
	Rows []developerRow `json:"rows" nullable:"false"`
	rest.RowCounts
}

// listRows answers a list of developers with rows.
func (s *Service) listRows(ctx context.Context, c *rest.Call) (any, error) {
	inactive, err := rest.OneOf(c, "inactive", "true", "false")
	if err != nil {
		return nil, err
	}
	page, order, err := rest.RowPage(c, "name", "created_at")
	if err != nil {
		return nil, err
	}
	f := &store.RowFilter{Search: c.Query("q")}
	if inactive != "" {
		f.Active = new(inactive == "false")
	}
	found, total, err := s.Store.DeveloperRows(ctx, c.Who.Org, f, cmp.Or(order, "name"), page)
	if err != nil {
		return nil, err
	}
	list := developerRows{Rows: make([]developerRow, 0, len(found)), RowCounts: rest.RowCountsOf(total, page)}
	for _, r := range found {
		list.Rows = append(list.Rows, developerRow{
			ID: r.ID, Email: r.Email, Inactive: r.Inactive, Verified: r.Verified, LastLogin: r.LastLoginAt, Keys: r.Keys,
			Version: r.Version, Created: r.CreatedAt, Updated: r.UpdatedAt,
		})
	}
	return list, nil
}
