package signin

import (
	"cmp"
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// How long links sign in, and how many of a kind a user may have; one more ends the
// oldest.
const (
	enterFor  = 10 * time.Minute
	inviteFor = 72 * time.Hour
	maxLinks  = 3
)

// Link is a link that signs its user in once.
type Link struct {
	// Link that signs the user in once; the part after # is the secret. Empty: it is in a letter.
	Link string `json:"link"`
	// Time after which the link is refused.
	ExpiresAt time.Time `json:"expires_at"`
	// E-mail address that a letter with the link goes to; left out: no letter is sent.
	SentTo string `json:"sent_to,omitempty"`
}

// Ways to invite a user.
const (
	ByLink   = "link"   // the answer has the link
	ByLetter = "letter" // the user gets a letter with it
)

// Enter returns a link that signs a user in within ten minutes. The link leads to the
// admin at a base URL.
func (s *Service) Enter(ctx context.Context, by store.Author, u *store.User, base string) (Link, error) {
	return s.link(ctx, by, u, linkOptions{purpose: store.EnterToken, lasts: enterFor, base: base})
}

// Invite returns a link that signs a new user in within 72 hours, as part of a call, or
// sends it: how is ByLink or ByLetter.
func (s *Service) Invite(ctx context.Context, c *rest.Call, u *store.User, how string) (Link, error) {
	o := linkOptions{purpose: store.InviteToken, lasts: inviteFor, base: s.base(c)}
	if how == ByLetter {
		o.letter = model.InvitationLetter
	}
	return s.link(ctx, c.Author(c.Source()), u, o)
}

// CanInvite returns the error for every invitation of a kind, or nil.
func (s *Service) CanInvite(how string) error {
	if how != ByLetter {
		return nil
	}
	return s.Letters.CanHoldTokens()
}

// linkOptions are what a link is.
type linkOptions struct {
	purpose store.TokenPurpose
	lasts   time.Duration
	base    string // URL of the admin
	keep    int    // links of the purpose that the user may have; 0: maxLinks

	letter model.LetterKind // the letter that has the link; "": it is returned
}

func (s *Service) link(ctx context.Context, by store.Author, u *store.User, o linkOptions) (Link, error) {
	if !signsIn(u) {
		return Link{}, rest.BadRequest("Validation failed", "id: names a gateway or an inactive user, who cannot sign in")
	}
	token := rest.RandomText(rest.Alphanumeric, rest.KeyDigits)
	now := s.Now()
	until := now.Add(o.lasts)
	// In the fragment, which browsers send to no server and no log has.
	made := Link{Link: cmp.Or(s.PublicURL, o.base) + "/enter#" + token, ExpiresAt: until.UTC().Truncate(time.Second)}
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		err := tx.PutLink(ctx, by, u, store.UserToken{Hash: rest.HashOf([]byte(token)), Purpose: o.purpose, At: now, Until: until}, cmp.Or(o.keep, maxLinks))
		if err != nil || o.letter == "" {
			return err
		}
		return s.Letters.Put(ctx, tx, model.Letter{Org: u.OrgID, Kind: o.letter, To: u.Email, Link: made.Link})
	})
	if o.letter != "" {
		made.Link, made.SentTo = "", u.Email
	}
	return made, err
}

// base returns the URL of the admin as a caller reaches it.
func (s *Service) base(c *rest.Call) string {
	origin := string(c.HTTP.Request.Header.Peek(fasthttp.HeaderOrigin))
	if origin != "" && !rest.FromOtherPage(c.HTTP) {
		return origin
	}
	return "http://" + string(c.HTTP.Host())
}

// enterMe answers with a link for the caller.
func (s *Service) enterMe(ctx context.Context, c *rest.Call) (any, error) {
	by := c.Author(c.Source())
	by.Org = c.Who.Home
	return s.enterUser(ctx, c, by, c.Who.ID)
}

// enter answers with a link for a user.
func (s *Service) enter(ctx context.Context, c *rest.Call) (any, error) {
	return s.enterUser(ctx, c, c.Author(c.Source()), c.Param("id"))
}

func (s *Service) enterUser(ctx context.Context, c *rest.Call, by store.Author, id string) (any, error) {
	u, err := s.Store.UserByID(ctx, by.Org, id)
	if err != nil {
		return nil, rest.Missing(err, "User not found")
	}
	return s.Enter(ctx, by, &u, s.base(c))
}

// invitation is the body of a call that invites a user again.
type invitation struct {
	// How the link reaches the user. link: the answer has it; letter: the user gets a letter with it.
	// Default: link.
	By string `json:"by,omitempty" enum:"link,letter"`
}

// invite makes another link for a user who was invited.
func (s *Service) invite(ctx context.Context, c *rest.Call) (any, error) {
	var sent invitation
	if len(c.HTTP.Request.Body()) > 0 {
		if err := c.Decode(&sent); err != nil {
			return nil, err
		}
	}
	if sent.By != "" && sent.By != ByLink && sent.By != ByLetter {
		return nil, rest.BadRequest("Validation failed", "by: must be link or letter")
	}
	if err := s.CanInvite(sent.By); err != nil {
		return nil, err
	}
	u, err := s.Store.UserByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, "User not found")
	}
	return s.Invite(ctx, c, &u, sent.By)
}
