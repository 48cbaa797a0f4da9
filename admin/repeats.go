package admin

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// How long the answers to repeatable calls are kept, and how often those that are
// older are looked for.
const (
	repeatWithin   = 24 * time.Hour
	forgetInterval = time.Hour
)

// maxKept is the longest answer that is kept, in bytes.
const maxKept = 64 << 10

// repeatableOf returns what a call says of itself by an Idempotency-Key, which
// counts for calls that make something; nil when it says nothing.
func repeatableOf(c *rest.Call) (*store.Repeatable, error) {
	key := string(c.HTTP.Request.Header.Peek("Idempotency-Key"))
	if key == "" || c.Route.Method != fasthttp.MethodPost || c.Who.Org == "" {
		return nil, nil
	}
	const most = 255
	if len(key) > most || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, rest.BadRequest("Idempotency-Key must be at most 255 visible ASCII characters")
	}
	// With what the caller shows for a key: a plain sum of a body with a password in
	// it could be guessed from the table.
	sum := hmac.New(sha256.New, rest.CredentialOf(c.HTTP))
	sum.Write(c.HTTP.URI().RequestURI())
	sum.Write([]byte{0})
	sum.Write(c.HTTP.Request.Body())
	return &store.Repeatable{Org: c.Who.Org, Caller: c.Who.Kind + ":" + c.Who.ID, Key: key, Route: c.Route.Name(), BodyHash: sum.Sum(nil)}, nil
}

// answerOnce answers a call that may come several times: what it does is done
// once, and who sends it again has the first one's answer.
func (s *Server) answerOnce(ctx context.Context, c *rest.Call, call *store.Repeatable) error {
	before, err := s.deps.Store.Answered(ctx, call)
	if err == nil {
		return again(c, before)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	ctx = store.Claim(ctx, call)
	err = handle(ctx, c)
	switch {
	case store.IsRepeated(err):
		if before, err = s.deps.Store.Answered(ctx, call); err != nil {
			return err
		}
		return again(c, before)
	case err != nil:
		s.unclaim(ctx, call, err)
		return err
	case store.Claimed(ctx) && !c.Route.Secret:
		s.keepAnswer(ctx, c, call)
	}
	return nil
}

// unclaim lets a call that failed be made again, where it is known to have
// failed.
func (s *Server) unclaim(ctx context.Context, call *store.Repeatable, cause error) {
	if !store.Claimed(ctx) || errors.Is(cause, store.ErrUnavailable) {
		return
	}
	if err := s.deps.Store.Unclaim(ctx, call); err != nil {
		s.log.Warn("a failed call could not be made repeatable again", "route", call.Route, "err", err)
	}
}

// keepAnswer keeps an answer that is not too large; without it, who sends the call
// again learns only that it was carried out.
func (s *Server) keepAnswer(ctx context.Context, c *rest.Call, call *store.Repeatable) {
	body := bytes.Clone(c.HTTP.Response.Body())
	if len(body) > maxKept {
		return
	}
	if err := s.deps.Store.KeepAnswer(ctx, call, c.HTTP.Response.StatusCode(), body); err != nil {
		s.log.Warn("the answer to a repeatable call could not be kept", "route", call.Route, "err", err)
	}
}

// again answers a call that was carried out before.
func again(c *rest.Call, before store.Answered) error {
	switch {
	case !before.Same:
		return rest.Refuse(fasthttp.StatusConflict, "Idempotency-Key was used for another call")
	case before.Status == 0 && c.Route.Secret:
		return rest.Refuse(fasthttp.StatusConflict, "The call was carried out before; the credential in its answer was shown that once")
	case before.Status == 0:
		return rest.Refuse(fasthttp.StatusConflict, "The call was carried out before, or is being carried out; its answer is not kept")
	}
	c.HTTP.Response.Header.Set("Idempotent-Replayed", "true")
	rest.WriteJSON(c.HTTP, before.Status, before.Answer)
	return nil
}

// forgetCalls forgets what nobody will send again, until ctx ends.
func (s *Server) forgetCalls(ctx context.Context) {
	tick := time.NewTicker(forgetInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if err := s.deps.Store.ForgetCalls(ctx, now.Add(-repeatWithin)); err != nil {
				s.log.Warn("old answers to repeatable calls could not be forgotten", "err", err)
			}
		}
	}
}
