package admin

import (
	"cmp"
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
)

// userRow is a user in a list of rows.
type userRow struct {
	// Id of the user.
	ID string `json:"id"`
	// E-mail address of the user, by which they sign in.
	Email string `json:"email_address"`
	// First name, cut after 128 bytes.
	FirstName string `json:"first_name"`
	// Last name, cut after 128 bytes.
	LastName string `json:"last_name"`
	// What the user may do, from viewer to admin; gateway is for the calls of gateways.
	Role string `json:"role" enum:"viewer,approver,editor,admin,gateway"`
	// Whether the user may sign in and call.
	Active bool `json:"active"`
	// Whether the user has chosen a password.
	HasPassword bool `json:"has_password"`
	// Version of the object, for If-Match; it grows with each change.
	Version int64 `json:"version"`
	// Time at which the user was created.
	CreatedAt time.Time `json:"created_at"`
	// Time of the last change.
	UpdatedAt time.Time `json:"updated_at"`
}

// userRows is one page of rows of users.
type userRows struct {
	// Users of the page.
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
