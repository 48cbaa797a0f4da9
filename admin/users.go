package admin

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/signin"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
)

func (s *Server) userRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/users", Summary: "List users", Tag: "Users", Role: rest.Admin,
			Query: append([]string{"view", "active"}, rest.Searching...), Reply: userList{}, Rows: userRows{}, Wrong: []int{400}, Handle: s.listUsers,
		},
		{
			Method: "GET", Path: "/api/users/me", Summary: "Get the user who calls", Tag: "Users", Role: rest.Viewer,
			Reply: user{}, Handle: s.getMe,
		},
		{
			Method: "POST", Path: "/api/users", Summary: "Create a user; the answer shows the access key this once", Tag: "Users", Role: rest.Admin,
			Body: user{}, Reply: rest.Envelope{}, Wrong: []int{400, 413, 415}, Secret: true, Handle: s.createUser,
		},
		{
			Method: "GET", Path: "/api/users/{id}", Summary: "Get a user", Tag: "Users", Role: rest.Admin,
			Reply: user{}, Wrong: []int{404}, Handle: s.getUser,
		},
		{
			Method: "PUT", Path: "/api/users/{id}", Summary: "Replace a user's names, address, role and state", Tag: "Users", Role: rest.Admin,
			Body: user{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updateUser,
		},
		{
			Method: "DELETE", Path: "/api/users/{id}", Summary: "Delete a user", Tag: "Users", Role: rest.Admin,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Handle: s.deleteUser,
		},
		{
			Method: "PUT", Path: "/api/users/{id}/actions/key/reset", Summary: "Give a user another access key, shown this once", Tag: "Users", Role: rest.Admin,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.resetUserKey,
		},
	}
}

// user is a user as REST shows one.
type user struct {
	// Id of the user; filled in.
	ID string `json:"id,omitempty"`
	// First name for people, at most 512 bytes.
	FirstName string `json:"first_name"`
	// Last name for people, at most 512 bytes.
	LastName string `json:"last_name"`
	// E-mail address of the user, which no other user of the installation has. It is the name to sign
	// in with.
	// Example: "ada@example.com"
	Email string `json:"email_address"`
	// What the user may do, from viewer to admin; gateway is for the calls of gateways. Default:
	// viewer, when a user is created.
	Role string `json:"role" enum:"viewer,approver,editor,admin,gateway"`
	// Whether the user may sign in and call. Default: true.
	Active *bool `json:"active,omitempty"`
	// Id of the organisation that the user belongs to; filled in.
	OrgID string `json:"org_id,omitempty"`
	// How a new user gets in; only when a user is created. link: the answer has a link that signs the
	// user in once, within 72 hours; letter: the user gets a letter with it. Default: only by the
	// access key.
	Invite string `json:"invite,omitempty" enum:"link,letter"`
	// Permissions that follow from role, for clients of other gateways; ignored in a request.
	Permissions map[string]string `json:"user_permissions,omitempty"`
	// Time at which the user was created; filled in.
	CreatedAt *time.Time `json:"created_at,omitempty"`
	// Time of the last change; filled in.
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
}

// userList is one page of users.
type userList struct {
	// Users of the page.
	Users []user `json:"users"`
	// Number of pages.
	Pages int64 `json:"pages"`
}

func (s *Server) listUsers(ctx context.Context, c *rest.Call) (any, error) {
	if rows, err := rest.WantsRows(c, "sort", "active"); err != nil || rows {
		return s.answerRows(ctx, c, err, s.listUserRows)
	}
	page, err := c.Page(true)
	if err != nil {
		return nil, err
	}
	rows, total, err := s.deps.Store.ListUsers(ctx, c.Who.Org, c.Query("q"), page)
	if err != nil {
		return nil, err
	}
	list := userList{Users: make([]user, 0, len(rows)), Pages: rest.Pages(total, page)}
	for _, row := range rows {
		list.Users = append(list.Users, showUser(row))
	}
	return list, nil
}

func (s *Server) getUser(ctx context.Context, c *rest.Call) (any, error) {
	return s.answerUser(ctx, c, c.Param("id"))
}

func (s *Server) getMe(ctx context.Context, c *rest.Call) (any, error) {
	c.Who.Org = c.Who.Home
	return s.answerUser(ctx, c, c.Who.ID)
}

func (s *Server) answerUser(ctx context.Context, c *rest.Call, id string) (any, error) {
	row, err := s.deps.Store.UserByID(ctx, c.Who.Org, id)
	if err != nil {
		return nil, rest.Missing(err, "User not found")
	}
	c.SetVersion(row.Version)
	return showUser(row), nil
}

func (s *Server) createUser(ctx context.Context, c *rest.Call) (any, error) {
	row, invite, err := readUser(c, string(rest.Viewer))
	if err != nil {
		return nil, err
	}
	if err := s.checkGatewayRole(ctx, c, row.Role); err != nil {
		return nil, err
	}
	if err := s.signin.CanInvite(invite); err != nil {
		return nil, err
	}
	key := NewAccessKey()
	row.ID, row.AccessKeyHash = rest.NewID(), rest.HashOf([]byte(key))
	if err := s.deps.Store.CreateUser(ctx, c.Author(c.Source()), row); err != nil {
		return nil, addressTaken(err)
	}
	c.SetVersion(row.Version)
	answer := rest.Done("User and session have been created", row.ID)
	answer.AccessKey = key
	if invite != "" {
		link, err := s.signin.Invite(ctx, c, row, invite)
		if err != nil {
			return nil, err
		}
		answer.Invitation = link.Link
	}
	return answer, nil
}

func (s *Server) updateUser(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	row, invite, err := readUser(c, "")
	if err == nil && invite != "" {
		err = rest.BadRequest("Validation failed", "invite: is for new users; POST /api/users/{id}/actions/invite invites another one again")
	}
	if err != nil {
		return nil, err
	}
	if err := s.checkGatewayRole(ctx, c, row.Role); err != nil {
		return nil, err
	}
	row.ID = c.Param("id")
	if err := s.deps.Store.UpdateUser(ctx, c.Author(c.Source()), row, have); err != nil {
		return nil, addressTaken(rest.Missing(err, "User not found"))
	}
	c.SetVersion(row.Version)
	return rest.Done("User updated", nil), nil
}

func (s *Server) deleteUser(ctx context.Context, c *rest.Call) (any, error) {
	before, err := s.deps.Store.UserByID(ctx, c.Who.Org, c.Param("id"))
	if err == nil {
		err = s.deps.Store.DeleteUser(ctx, c.Author(c.Source()), before.ID)
	}
	if err != nil {
		return nil, rest.Missing(err, "User not found")
	}
	s.accessKeyChanged(&before, secret.Value{})
	return rest.Done("User deleted", nil), nil
}

func (s *Server) resetUserKey(ctx context.Context, c *rest.Call) (any, error) {
	key := NewAccessKey()
	before, err := s.deps.Store.UserByID(ctx, c.Who.Org, c.Param("id"))
	if err == nil {
		err = s.deps.Store.ResetUserKey(ctx, c.Author(c.Source()), before.ID, rest.HashOf([]byte(key)))
	}
	if err != nil {
		return nil, rest.Missing(err, "User not found")
	}
	s.accessKeyChanged(&before, secret.New(key))
	answer := rest.Done("Access key has been reset; the old one has ended", c.Param("id"))
	answer.AccessKey = key
	return answer, nil
}

// accessKeyChanged reports that the access key of a user has ended, and which one took its
// place; empty: none.
func (s *Server) accessKeyChanged(before *store.User, now secret.Value) {
	if s.deps.AccessKeyChanged != nil {
		s.deps.AccessKeyChanged(before.AccessKeyHash, now)
	}
}

// checkGatewayRole reserves the role gateway for the first organisation: gateways serve
// all organisations, so that a user with the role can read the configuration of each.
func (s *Server) checkGatewayRole(ctx context.Context, c *rest.Call, wanted string) error {
	if rest.Role(wanted) != rest.Gateway {
		return nil
	}
	first, err := s.deps.Store.FirstOrg(ctx)
	if err == nil && first != c.Who.Org {
		err = rest.Refuse(fasthttp.StatusForbidden, "access denied: only the first organisation has users with the role gateway")
	}
	return err
}

// EnterLink returns a link that signs a user in once, within ten minutes: the one with an
// access key or, if nobody has it, the first admin. The admin is reached at a base URL.
func (s *Server) EnterLink(ctx context.Context, key secret.Value, base string) (link string, err error) {
	u, err := s.deps.Store.UserByKey(ctx, rest.HashOf([]byte(key.Reveal())))
	if errors.Is(err, store.ErrNotFound) {
		u, err = s.deps.Store.FirstAdmin(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("finding the user of a link: %w", err)
	}
	by := store.Author{Org: u.OrgID, Name: "start", Kind: "system", Source: "api"}
	made, err := s.signin.Enter(ctx, by, &u, base)
	return made.Link, err
}

// addressTaken answers 403 for an e-mail address that another user has.
func addressTaken(err error) error {
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok && conflict.Kind == store.TakenName {
		return rest.Refuse(fasthttp.StatusForbidden, "Another user has this email_address")
	}
	return err
}

// readUser reads a user from the body, and how to invite the user. Fallback is the role if
// the body has none.
func readUser(c *rest.Call, fallback string) (row *store.User, invite string, err error) {
	var u user
	if err := c.Decode(&u); err != nil {
		return nil, "", err
	}
	if u.Role == "" {
		u.Role = fallback
	}
	row, problems := checkUser(&u)
	if problems != nil {
		return nil, "", rest.BadRequest("Validation failed", problems...)
	}
	return row, u.Invite, nil
}

// checkUser returns a user to be stored, or what is wrong with it.
func checkUser(u *user) (row *store.User, problems []string) {
	if address, err := mail.ParseAddress(u.Email); err != nil || address.Address != u.Email || len(u.Email) > 254 {
		problems = append(problems, "email_address: must be an address such as ann@example.com")
	}
	if u.Invite != "" && (u.Invite != signin.ByLink && u.Invite != signin.ByLetter || u.Role == string(rest.Gateway)) {
		problems = append(problems, "invite: must be link or letter, and gateways are not invited")
	}
	if !rest.Role(u.Role).Known() {
		problems = append(problems, fmt.Sprintf("role: must be viewer, approver, editor, admin or gateway, not %.40q", u.Role))
	}
	for _, one := range []struct{ name, value string }{{"first_name", u.FirstName}, {"last_name", u.LastName}} {
		if len(one.value) > rest.MaxText || !rest.Printable(one.value) {
			problems = append(problems, fmt.Sprintf("%s: must be at most %d bytes of printable text", one.name, rest.MaxText))
		}
	}
	if problems != nil {
		return nil, problems
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
	if row.Role == string(rest.Admin) {
		shown.Permissions["IsAdmin"] = "admin"
	}
	return shown
}
