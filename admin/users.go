package admin

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/store"
)

// user is a user as people see one.
type user struct {
	ID          string            `json:"id,omitempty"`
	FirstName   string            `json:"first_name"`
	LastName    string            `json:"last_name"`
	Email       string            `json:"email_address"`
	Role        string            `json:"role" enum:"viewer,editor,admin,gateway"`
	Active      *bool             `json:"active,omitempty" doc:"default true"`
	OrgID       string            `json:"org_id,omitempty"`
	Permissions map[string]string `json:"user_permissions,omitempty" doc:"follows from role; ignored in a request"`
	CreatedAt   *time.Time        `json:"created_at,omitempty"`
	UpdatedAt   *time.Time        `json:"updated_at,omitempty"`
}

// userList is one page of users.
type userList struct {
	Users []user `json:"users"`
	Pages int64  `json:"pages"`
}

func (s *Server) listUsers(ctx context.Context, c *call) (any, error) {
	page, err := s.page(c, true)
	if err != nil {
		return nil, err
	}
	rows, total, err := s.deps.Store.ListUsers(ctx, c.who.org, c.query("q"), page)
	if err != nil {
		return nil, err
	}
	list := userList{Users: make([]user, 0, len(rows)), Pages: pages(total, page)}
	for _, row := range rows {
		list.Users = append(list.Users, showUser(row))
	}
	return list, nil
}

func (s *Server) getUser(ctx context.Context, c *call) (any, error) {
	return s.answerUser(ctx, c, c.param("id"))
}

func (s *Server) getMe(ctx context.Context, c *call) (any, error) {
	return s.answerUser(ctx, c, c.who.id)
}

func (s *Server) answerUser(ctx context.Context, c *call, id string) (any, error) {
	row, err := s.deps.Store.UserByID(ctx, c.who.org, id)
	if err != nil {
		return nil, missing(err, "User not found")
	}
	c.setVersion(row.Version)
	return showUser(row), nil
}

func (s *Server) createUser(ctx context.Context, c *call) (any, error) {
	row, err := c.user(string(roleViewer))
	if err != nil {
		return nil, err
	}
	if err := s.checkGatewayRole(ctx, c, row.Role); err != nil {
		return nil, err
	}
	key := NewAccessKey()
	row.ID, row.AccessKeyHash = newID(), hashOf([]byte(key))
	if err := s.deps.Store.CreateUser(ctx, c.author(c.source()), row); err != nil {
		return nil, addressTaken(err)
	}
	c.setVersion(row.Version)
	answer := done("User and session have been created", row.ID)
	answer.AccessKey = key
	return answer, nil
}

func (s *Server) updateUser(ctx context.Context, c *call) (any, error) {
	have, err := c.ifMatch()
	if err != nil {
		return nil, err
	}
	row, err := c.user("")
	if err != nil {
		return nil, err
	}
	if err := s.checkGatewayRole(ctx, c, row.Role); err != nil {
		return nil, err
	}
	row.ID = c.param("id")
	if err := s.deps.Store.UpdateUser(ctx, c.author(c.source()), row, have); err != nil {
		return nil, addressTaken(missing(err, "User not found"))
	}
	c.setVersion(row.Version)
	return done("User updated", nil), nil
}

func (s *Server) deleteUser(ctx context.Context, c *call) (any, error) {
	if err := s.deps.Store.DeleteUser(ctx, c.author(c.source()), c.param("id")); err != nil {
		return nil, missing(err, "User not found")
	}
	return done("User deleted", nil), nil
}

func (s *Server) resetUserKey(ctx context.Context, c *call) (any, error) {
	key := NewAccessKey()
	if err := s.deps.Store.ResetUserKey(ctx, c.author(c.source()), c.param("id"), hashOf([]byte(key))); err != nil {
		return nil, missing(err, "User not found")
	}
	answer := done("Access key has been reset; the old one has ended", c.param("id"))
	answer.AccessKey = key
	return answer, nil
}

// checkGatewayRole keeps the role gateway to the first organisation: gateways
// serve all organisations, so that who has the role can read what all of them
// configured.
func (s *Server) checkGatewayRole(ctx context.Context, c *call, wanted string) error {
	if role(wanted) != roleGateway {
		return nil
	}
	first, err := s.deps.Store.FirstOrg(ctx)
	if err == nil && first != c.who.org {
		err = refuse(fasthttp.StatusForbidden, "access denied: only the first organisation has users with the role gateway")
	}
	return err
}

// addressTaken gives a taken e-mail address the answer that users have for it:
// 403.
func addressTaken(err error) error {
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok && conflict.Kind == store.TakenName {
		return refuse(fasthttp.StatusForbidden, "Another user has this email_address")
	}
	return err
}

// user reads a user from the body. A role that is not said is the one given, if
// there is one.
func (c *call) user(unsaid string) (*store.User, error) {
	var u user
	if err := c.decode(&u); err != nil {
		return nil, err
	}
	if u.Role == "" {
		u.Role = unsaid
	}
	var problems []string
	if address, err := mail.ParseAddress(u.Email); err != nil || address.Address != u.Email || len(u.Email) > 254 {
		problems = append(problems, "email_address: must be an address such as ann@example.com")
	}
	if !role(u.Role).known() {
		problems = append(problems, fmt.Sprintf("role: must be viewer, editor, admin or gateway, not %.40q", u.Role))
	}
	for _, one := range []struct{ name, value string }{{"first_name", u.FirstName}, {"last_name", u.LastName}} {
		if len(one.value) > maxText || !printable(one.value) {
			problems = append(problems, fmt.Sprintf("%s: must be at most %d bytes of printable text", one.name, maxText))
		}
	}
	if problems != nil {
		return nil, badRequest("Validation failed", problems...)
	}
	return &store.User{
		Email: u.Email, FirstName: u.FirstName, LastName: u.LastName,
		Role: u.Role, Active: u.Active == nil || *u.Active,
	}, nil
}

func showUser(row store.User) user {
	shown := user{
		ID: row.ID, FirstName: row.FirstName, LastName: row.LastName, Email: row.Email, Role: row.Role,
		Active: &row.Active, OrgID: row.OrgID, CreatedAt: &row.CreatedAt, UpdatedAt: &row.UpdatedAt,
		Permissions: map[string]string{},
	}
	if row.Role == string(roleAdmin) {
		shown.Permissions["IsAdmin"] = "admin"
	}
	return shown
}
