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

// How long answers to repeatable calls are kept, and how often older ones are deleted.
const (
	repeatWithin   = 24 * time.Hour
	forgetInterval = time.Hour
)

// maxKept bounds the answers that are stored, in bytes.
const maxKept = 64 << 10

// idempotentCall returns the identity of a POST that has an Idempotency-Key, nil for
// other calls.
func idempotentCall(c *rest.Call) (*store.Repeatable, error) {
	key := string(c.HTTP.Request.Header.Peek("Idempotency-Key"))
	if key == "" || c.Route.Method != fasthttp.MethodPost || c.Who.Org == "" {
		return nil, nil
	}
	const most = 255
	if len(key) > most || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, rest.BadRequest("Idempotency-Key must be at most 255 visible ASCII characters")
	}
	// Keyed with the caller's credential: a plain hash of a body that holds a password
	// could be guessed from the table.
	sum := hmac.New(sha256.New, rest.CredentialOf(c.HTTP))
	sum.Write(c.HTTP.URI().RequestURI())
	sum.Write([]byte{0})
	sum.Write(c.HTTP.Request.Body())
	return &store.Repeatable{Org: c.Who.Org, Caller: c.Who.Kind + ":" + c.Who.ID, Key: key, Route: c.Route.Name(), BodyHash: sum.Sum(nil)}, nil
}

// answerIdempotent carries a call out once, and answers repetitions with the first
// answer.
func (s *Server) answerIdempotent(ctx context.Context, c *rest.Call, call *store.Repeatable) error {
	before, err := s.deps.Store.Answered(ctx, call)
	if err == nil {
		return answerAgain(c, before)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	ctx = store.Claim(ctx, call)
	err = handle(ctx, c)
	switch {
	case store.WasCarriedOut(err):
		if before, err = s.deps.Store.Answered(ctx, call); err != nil {
			return err
		}
		return answerAgain(c, before)
	case err != nil:
		s.unclaim(ctx, call, err)
		return err
	case store.Claimed(ctx) && !c.Route.Secret:
		s.storeAnswer(ctx, c, call)
	}
	return nil
}

// unclaim allows a call that is known to have failed to be made again.
func (s *Server) unclaim(ctx context.Context, call *store.Repeatable, cause error) {
	if !store.Claimed(ctx) || errors.Is(cause, store.ErrUnavailable) {
		return
	}
	if err := s.deps.Store.Unclaim(ctx, call); err != nil {
		s.log.Warn("a failed call could not be made repeatable again", "route", call.Route, "err", err)
	}
}

// storeAnswer stores the answer for repetitions of the call. Of an answer that is too
// large, repetitions learn only that the call was carried out.
func (s *Server) storeAnswer(ctx context.Context, c *rest.Call, call *store.Repeatable) {
	body := bytes.Clone(c.HTTP.Response.Body())
	if len(body) > maxKept {
		return
	}
	if err := s.deps.Store.KeepAnswer(ctx, call, c.HTTP.Response.StatusCode(), body); err != nil {
		s.log.Warn("the answer to a repeatable call could not be kept", "route", call.Route, "err", err)
	}
}

// answerAgain answers a call that was carried out before.
func answerAgain(c *rest.Call, before store.Answered) error {
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

// deleteOldCalls deletes stored calls after repeatWithin, until ctx ends.
func (s *Server) deleteOldCalls(ctx context.Context) {
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
