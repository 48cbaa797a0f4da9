package signin

import (
	"context"
	"errors"
	"net"
	"net/mail"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/sleep"
)

const (
	forgotFor = time.Hour // how long the link of a letter signs in

	// Letters that strangers ask for must not end links that an admin made, of which there
	// are at most maxLinks. In an hour there are fewer letters than this.
	maxForgotLinks = 20
)

// forgotten is the body of a call that asks for a letter to set a password.
type forgotten struct {
	// E-mail address of the user; the answer is the same whether a user has it or not.
	// Example: "ada@example.com"
	Email string `json:"email_address"`
}

// letterSent is the answer to everybody, so that it does not reveal who has an account.
const letterSent = "If there is a user with this address, a letter with a link is on its way; it works for an hour"

// forgot sends a letter with a link that signs in once. Wording and duration are the same
// whether the address is a user's or not.
func (s *Service) forgot(ctx context.Context, c *rest.Call) (any, error) {
	var sent forgotten
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	if rest.FromOtherPage(c.HTTP) {
		return nil, rest.Refuse(fasthttp.StatusForbidden, "access denied: a page of another origin cannot ask for letters")
	}
	if wait := s.letters.Failed(c.HTTP.RemoteIP()); wait > 0 {
		return nil, tooMany("Too many letters for this address; try again later", wait)
	}
	if err := s.canWrite(c); err != nil {
		return nil, err
	}
	began := time.Now()
	address, err := mail.ParseAddress(sent.Email)
	if err == nil && address.Address == sent.Email && len(sent.Email) <= maxEmail && s.mailboxes.Try(strings.ToLower(sent.Email)) == 0 {
		if err := s.sendLink(ctx, c, sent.Email); err != nil {
			return nil, err
		}
	}
	_ = sleep.For(ctx, time.Until(began.Add(minAnswerTime)))
	return rest.Done(letterSent, nil), nil
}

// canWrite returns why there are no letters about lost passwords here, or nil. Without a
// public URL the link would lead where the caller says, to an address of an attacker.
func (s *Service) canWrite(c *rest.Call) error {
	if s.PublicURL == "" && !isLoopback(string(c.HTTP.Host())) {
		return rest.Refuse(fasthttp.StatusConflict, "There are no letters about lost passwords: admin.public_url is not set. An admin can make a link that signs you in")
	}
	return s.Letters.CanHoldTokens()
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *Service) sendLink(ctx context.Context, c *rest.Call, email string) error {
	u, err := s.Store.UserByEmail(ctx, email)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnstorable) || err == nil && !signsIn(&u) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = s.link(ctx, author(c, &u), &u, linkOptions{
		purpose: store.EnterToken, lasts: forgotFor, keep: maxForgotLinks, letter: model.LostPasswordLetter, base: "http://" + string(c.HTTP.Host()),
	})
	return err
}
