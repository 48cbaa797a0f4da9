package auth

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// A mode is one way in which clients authenticate. If it admits a request it has set
// Token, KeyHash, KeyName, Session, Grants and InGrace of the exchange, and replaced
// what a mode before it set. It does not allocate for a client that is cached.
type mode interface {
	pipeline.Stage
	pipeline.Explainer

	// Named is Handle for a dry-run exchange that names the calling key by its
	// identity, in ex.KeyHash. It refuses a key that the mode's credentials cannot
	// find.
	Named(ex *pipeline.Exchange) pipeline.Verdict

	// presented returns the credential of a request, without a text if there is none.
	presented(ex *pipeline.Exchange) presented
}

// newMode returns the mode of that name for an API whose credential is at from.
func (a *Auth) newMode(name string, def *definition.API, from source) (mode, error) {
	switch name {
	case definition.BasicAuthMode:
		return newPasswordMode(a, def, from)
	case definition.JWTMode:
		return newJWTMode(a, def, from)
	case definition.OAuthMode:
		return newOAuthMode(a, def, from)
	}
	return newTokenMode(a, def, from)
}

// modesOf returns the modes of an API in the order in which requests pass them, and
// where their credentials are. The session of the last mode counts: that is the one
// which base_identity_provided_by names, or else the last of definition.AuthModes.
func (a *Auth) modesOf(def *definition.API) (modes []mode, places []*definition.Auth, err error) {
	var base mode
	for i := range definition.AuthModes {
		kind := &definition.AuthModes[i]
		if !kind.On(def) {
			continue
		}
		place := def.Place(kind.Config)
		m, err := a.newMode(kind.Name, def, newSource(place))
		if err != nil {
			return nil, nil, fmt.Errorf("authentication by %s: %w", kind.Name, err)
		}
		places = append(places, place)
		if kind.Name == def.BaseIdentity {
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
