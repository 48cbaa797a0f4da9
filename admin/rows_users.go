package admin

import (
	"cmp"
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
)

// userRow is a user in a list of rows.
type userRow struct {
	ID          string    `json:"id"`
	Email       string    `json:"email_address"`
	FirstName   string    `json:"first_name" doc:"cut after 128 bytes"`
	LastName    string    `json:"last_name" doc:"cut after 128 bytes"`
	Role        string    `json:"role" enum:"viewer,approver,editor,admin,gateway"`
	Active      bool      `json:"active"`
	HasPassword bool      `json:"has_password"`
	Version     int64     `json:"version" doc:"for If-Match"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// userRows is one page of rows of users.
type userRows struct {
	Rows []userRow `json:"rows" nullable:"false"`
	rest.RowCounts
}

// listUserRows answers a list of users with rows.
func (s *Server) listUserRows(ctx context.Context, c *rest.Call) (any, error) {
	f, err := rowFilter(c)
	if err != nil {
		return nil, err
	}
	page, order, err := rest.RowPage(c, "name", "created_at")
	if err != nil {
		return nil, err
	}
	found, total, err := s.deps.Store.UserRows(ctx, c.Who.Org, f, cmp.Or(order, "name"), page)
	if err != nil {
		return nil, err
	}
	list := userRows{Rows: make([]userRow, 0, len(found)), RowCounts: rest.RowCountsOf(total, page)}
	for _, r := range found {
		list.Rows = append(list.Rows, userRow{
			ID: r.ID, Email: r.Email, FirstName: rest.Truncate(r.FirstName, 128), LastName: rest.Truncate(r.LastName, 128), Role: r.Role,
			Active: r.Active, HasPassword: r.HasPassword, Version: r.Version, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		})
	}
	return list, nil
}
