package auth

import (
	"slices"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// strip removes credentials from what is sent upstream. The client's request stays as it
// is, so that variables can still use the token.
type strip struct {
	headers []string // canonical names
	params  []string
	cookies []string // prefixes of names
}

// newStrip returns what removes the credentials at places, or nil if the definition
// forwards them.
func newStrip(def *definition.API, places []*definition.Auth) *strip {
	if !def.StripAuthData {
		return nil
	}
	s := &strip{}
	for _, place := range places {
		s.headers = addName(s.headers, headerOf(place)) // even if it is not used
		s.cookies = addName(s.cookies, orHeader(place.CookieName, place))
		if place.UseParam {
			s.params = addName(s.params, orHeader(place.ParamName, place))
		}
	}
	return s
}

func addName(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

func (s *strip) apply(ex *pipeline.Exchange) {
	if out := &ex.Outgoing; out.Drop == nil {
		out.Drop = s.headers
	} else {
		for _, name := range s.headers {
			out.AlsoDrop(name)
		}
	}
	for _, name := range s.params {
		stripParameter(ex, name)
	}
	for _, name := range s.cookies {
		stripCookie(ex, name)
	}
}
