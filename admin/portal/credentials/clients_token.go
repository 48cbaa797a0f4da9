package credentials

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-oauth2/oauth2/v4"
	oauth "github.com/go-oauth2/oauth2/v4/errors"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// ClientForm is the client in a form; it may stand in Authorization in its place.
type ClientForm struct {
	// Id of the client; left out if Authorization has it.
	ID string `json:"client_id,omitempty"`
	// Secret of the client; left out if Authorization has it.
	Secret string `json:"client_secret,omitempty"`
}

// tokenForm describes a token request.
type tokenForm struct {
	// Kind of the request: only client credentials are granted.
	Grant string `json:"grant_type" enum:"client_credentials"`
	ClientForm
}

// revocationForm describes a request that ends a token.
type revocationForm struct {
	// Token to end; the answer is the same if it is unknown.
	Token string `json:"token"`
	ClientForm
}

// granted is a successful token response (RFC 6749, section 5.1).
type granted struct {
	// Token that callers send behind Bearer, shown this once.
	AccessToken string `json:"access_token"`
	// Always Bearer.
	TokenType string `json:"token_type"`
	// Seconds for which the token is valid.
	ExpiresIn int64 `json:"expires_in"`
}

// oauthError is an error response (RFC 6749, section 5.2).
type oauthError struct {
	// Code of the error.
	// Example: "invalid_client"
	Code string `json:"error"`
	// What is wrong, in English.
	Description string `json:"error_description,omitempty"`

	status int
	wait   time.Duration // until another attempt is accepted; 0: now
}

// Error returns the code.
func (r *oauthError) Error() string { return r.Code }

func invalidRequest(description string) *oauthError {
	return &oauthError{Code: "invalid_request", Description: description, status: fasthttp.StatusBadRequest}
}

const maxForm = 8 << 10

// token answers a token request.
func (s *Clients) token(ctx context.Context, c *rest.Call) (any, error) {
	form, who, err := readForm(c)
	if err == nil {
		err = checkGrant(form)
	}
	if err != nil {
		return nil, s.refuse(c, err)
	}
	info, err := s.grant.GenerateAccessToken(ctx, oauth2.ClientCredentials, &oauth2.TokenGenerateRequest{ClientID: who.id, ClientSecret: who.secret})
	if err != nil {
		return nil, s.refuse(c, err)
	}
	writeOAuth(c, fasthttp.StatusOK, granted{info.GetAccess(), "Bearer", int64(info.GetAccessExpiresIn() / time.Second)})
	return nil, nil
}

// checkGrant refuses grants other than client credentials.
func checkGrant(form url.Values) error {
	switch grant := form.Get("grant_type"); {
	case grant == "":
		return invalidRequest("grant_type is missing; it must be client_credentials")
	case grant != string(oauth2.ClientCredentials):
		return &oauthError{Code: "unsupported_grant_type", Description: "grant_type must be client_credentials", status: fasthttp.StatusBadRequest}
	case form.Get("scope") != "":
		return &oauthError{Code: "invalid_scope", Description: "there are no scopes: the client's policy says what it may call", status: fasthttp.StatusBadRequest}
	}
	return nil
}

// revoke ends a token of the calling client. An unknown token counts as revoked (RFC
// 7009, section 2.2).
func (s *Clients) revoke(ctx context.Context, c *rest.Call) (any, error) {
	form, who, err := readForm(c)
	if err == nil && form.Get("token") == "" {
		err = invalidRequest("token is missing")
	}
	if err != nil {
		return nil, s.refuse(c, err)
	}
	found, err := clientStore{s}.GetByID(ctx, who.id)
	if err == nil && !found.(registeredClient).VerifyPassword(who.secret) {
		err = oauth.ErrInvalidClient
	}
	if err != nil {
		return nil, s.refuse(c, err)
	}
	row, hash := found.(registeredClient).row, s.d.Hasher.Hash(form.Get("token"))
	ended, err := s.d.Store.RevokeOAuthToken(ctx, &row, store.OAuthToken{Hash: hash, Shown: s.d.Hasher.Shown})
	if err != nil {
		return nil, s.refuse(c, clientGone(err))
	}
	if ended {
		s.d.Deliver(hash)
		s.d.Deliver(row.KeyHash)
	}
	writeOAuth(c, fasthttp.StatusOK, revoked{})
	return nil, nil
}

// A caller holds the credentials of a client.
type caller struct{ id, secret string }

// readForm reads a form without duplicate members, and the credentials of the client.
func readForm(c *rest.Call) (url.Values, caller, error) {
	kind, _, _ := strings.Cut(string(c.HTTP.Request.Header.ContentType()), ";")
	body := c.HTTP.Request.Body()
	switch {
	case !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded"):
		return nil, caller{}, invalidRequest("the body must be application/x-www-form-urlencoded")
	case len(body) > maxForm:
		return nil, caller{}, invalidRequest("the body is larger than 8 KiB")
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, caller{}, invalidRequest("the body is no form")
	}
	for name, values := range form {
		if len(values) > 1 {
			return nil, caller{}, invalidRequest(rest.Truncate(name, 40) + " stands in the form more than once")
		}
	}
	who, err := callerOf(c, form)
	return form, who, err
}

// callerOf reads the credentials of a client in Authorization or in the form (RFC 6749,
// section 2.3.1).
func callerOf(c *rest.Call, form url.Values) (caller, error) {
	header := string(c.HTTP.Request.Header.Peek(fasthttp.HeaderAuthorization))
	if header == "" {
		who := caller{id: form.Get("client_id"), secret: form.Get("client_secret")}
		if who.id == "" || who.secret == "" {
			return who, &oauthError{Code: "invalid_client", Description: "no client shows itself", status: fasthttp.StatusUnauthorized}
		}
		return who, nil
	}
	var who caller
	if form.Has("client_secret") {
		return who, invalidRequest("the client shows itself in Authorization and in the form")
	}
	scheme, shown, _ := strings.Cut(header, " ")
	both, err := base64.StdEncoding.DecodeString(strings.TrimSpace(shown))
	id, secret, colon := strings.Cut(string(both), ":")
	if !strings.EqualFold(scheme, "Basic") || err != nil || !colon {
		return who, &oauthError{Code: "invalid_client", Description: "Authorization must be Basic, with client_id:client_secret in base64", status: fasthttp.StatusUnauthorized}
	}
	var bad error
	if who.id, bad = url.QueryUnescape(id); bad == nil {
		who.secret, bad = url.QueryUnescape(secret)
	}
	if bad != nil || form.Has("client_id") && form.Get("client_id") != who.id {
		return who, invalidRequest("Authorization holds another client than the form, or no form encoding")
	}
	return who, nil
}

// refuse writes an error response, and returns errors that the caller did not cause.
func (s *Clients) refuse(c *rest.Call, err error) error {
	r, known := errors.AsType[*oauthError](err)
	switch {
	case known:
	case errors.Is(err, oauth.ErrInvalidClient):
		r = &oauthError{Code: "invalid_client", Description: "the client is unknown, or its secret is wrong", status: fasthttp.StatusUnauthorized}
		if r.wait = s.d.Attempts.Failed(c.HTTP.RemoteIP()); r.wait > 0 {
			r = &oauthError{Code: "temporarily_unavailable", Description: "too many wrong secrets from this address", status: fasthttp.StatusTooManyRequests, wait: r.wait}
		}
	case errors.Is(err, errFull):
		r = &oauthError{Code: "temporarily_unavailable", Description: errFull.Error(), status: fasthttp.StatusTooManyRequests, wait: time.Minute}
	case errors.Is(err, store.ErrUnstorable):
		r = invalidRequest("a member holds the character U+0000")
	default:
		return err
	}
	r.write(c)
	return nil
}

func (r *oauthError) write(c *rest.Call) {
	h := &c.HTTP.Response.Header
	if r.wait > 0 {
		h.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(int(r.wait/time.Second)+1))
	}
	if r.status == fasthttp.StatusUnauthorized {
		h.Set(fasthttp.HeaderWWWAuthenticate, `Basic realm="oauth"`)
	}
	writeOAuth(c, r.status, r)
}

// writeOAuth writes JSON that must not be cached.
func writeOAuth(c *rest.Call, status int, value any) {
	body, err := rest.Encode(value)
	if err != nil { // cannot happen: only text and numbers
		body = []byte(`{"error":"server_error"}`)
	}
	rest.WriteJSON(c.HTTP, status, body)
	c.HTTP.Response.Header.Set(fasthttp.HeaderPragma, "no-cache")
}
