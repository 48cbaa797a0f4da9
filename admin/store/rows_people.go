package store

import (
	"context"
	"strings"
	"time"
)

// A UserRow is what a list shows of a user.
type UserRow struct {
	ID, Email, FirstName, LastName, Role string
	Active, HasPassword                  bool
	Version                              int64
	CreatedAt, UpdatedAt                 time.Time
}

// A DeveloperRow is what a list shows of a developer.
type DeveloperRow struct {
	ID, Email            string
	Inactive, Verified   bool
	LastLoginAt          *time.Time // nil: never
	Keys                 int64
	Version              int64
	CreatedAt, UpdatedAt time.Time
}

// byEmail is the order that an index has.
const byEmail = `lower(email) COLLATE "C"`

// userSorts and developerSorts are the orders of rows of people.
var (
	userSorts = map[string]string{
		"name": "email, id", "-name": "email DESC, id DESC", "created_at": "created_at, id", "-created_at": "created_at DESC, id DESC",
	}
	developerSorts = map[string][2]string{
		"name": {byEmail + ", id", `lower(o.email) COLLATE "C", o.id`}, "-name": {byEmail + " DESC, id DESC", `lower(o.email) COLLATE "C" DESC, o.id DESC`},
		"created_at": {"created_at, id", ""}, "-created_at": {"created_at DESC, id DESC", ""},
	}
)

// UserRows is APIRows for users, found by a part of name or address. Sort is name, which is
// that of addresses, or created_at.
func (s *Store) UserRows(ctx context.Context, org string, f *RowFilter, sort string, page Page) ([]UserRow, int64, error) {
	where := []string{"org_id = @org"}
	where = given(where, f.Search != "", "(position(@search IN lower(email)) > 0 OR position(@search IN lower(first_name || ' ' || last_name)) > 0)")
	where = given(where, f.Active != nil, "active = @active")
	list := rowList{
		table: "users", where: where, order: userSorts[sort],
		show: `SELECT o.id, o.email, o.first_name, o.last_name, o.role, o.active, o.password_hash <> '', o.version, o.created_at, o.updated_at
FROM (%s) f JOIN users o ON o.id = f.id`,
	}
	return rowsOf[UserRow](ctx, s, &list, f.args(org, kindUser, page))
}

// DeveloperRows is UserRows for developers, who are found by the beginning of the address.
func (s *Store) DeveloperRows(ctx context.Context, org string, f *RowFilter, sort string, page Page) ([]DeveloperRow, int64, error) {
	args := f.args(org, "developer", page)
	where := []string{"org_id = @org"}
	if f.Search != "" {
		first := strings.ToLower(f.Search)
		args["first"], args["last"] = first, first+lastCharacter
		where = append(where, byEmail+" BETWEEN @first AND @last")
	}
	where = given(where, f.Active != nil, "inactive <> @active")
	list := rowList{
		table: "developers", where: where, order: developerSorts[sort][0], again: developerSorts[sort][1],
		show: `SELECT o.id, o.email, o.inactive, o.verified_at IS NOT NULL, o.last_login_at,
    (SELECT count(*) FROM developer_keys k WHERE k.developer_id = o.id), o.version, o.created_at, o.updated_at
FROM (%s) f JOIN developers o ON o.id = f.id`,
	}
	return rowsOf[DeveloperRow](ctx, s, &list, args)
}
