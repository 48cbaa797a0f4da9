package auth

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// A mode is one way in which callers say who they are. When it lets a request
// pass it has set whose it is: Token, KeyHash, KeyName, Session, Grants and Retiring,
// all of them, in place of what a mode before it set. It does not allocate for callers
// that it knows.
type mode interface {
	pipeline.Stage
	pipeline.Explainer

	// Named is Handle for a dry exchange that names the key which calls by its
	// identity, in ex.KeyHash. It refuses a key that no credential of the mode
	// stands for, as Handle would whatever the client made of it.
	Named(ex *pipeline.Exchange) pipeline.Verdict
}

// way is a mode that definitions can ask for.
type way struct {
	base  string // its name in base_identity_provided_by
	asks  func(*definition.API) bool
	make  func(*Auth, *definition.API, source) (mode, error)
	place func(*definition.API) *definition.Auth // where its credential stands
}

// ways lists every mode, in the order in which callers pass them.
var ways = []way{
	{"basic_auth_user", func(def *definition.API) bool { return def.UseBasicAuth }, newPasswordMode, func(def *definition.API) *definition.Auth { return def.Place("basic") }},
	{"jwt_claim", func(def *definition.API) bool { return def.EnableJWT }, newJWTMode, func(def *definition.API) *definition.Auth { return def.Place("jwt") }},
	{"oauth_key", func(def *definition.API) bool { return def.UseOAuth2 }, newOAuthMode, func(def *definition.API) *definition.Auth { return def.Place("oauth") }},
	{"auth_token", (*definition.API).UsesToken, newTokenMode, (*definition.API).Token},
}

// modesOf makes the modes that a definition asks for, and tells where their
// credentials stand. The mode whose session counts is the last: the one that
// base_identity_provided_by names, or else the last of ways.
func (a *Auth) modesOf(def *definition.API) (modes []mode, places []*definition.Auth, err error) {
	var base mode
	for _, w := range ways {
		if !w.asks(def) {
			continue
		}
		place := w.place(def)
		m, err := w.make(a, def, newSource(place))
		if err != nil {
			return nil, nil, fmt.Errorf("authentication by %s: %w", w.base, err)
		}
		places = append(places, place)
		if w.base == def.BaseIdentity {
			base = m
			continue
		}
		modes = append(modes, m)
	}
	if base != nil {
		modes = append(modes, base)
	}
	return modes, places, nil
}
