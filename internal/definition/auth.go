package definition

import "github.com/sluicegate/sluice/internal/definition/object"

// UsesToken tells whether callers show a token: when the API says so, or asks
// for no other credentials.
func (a *API) UsesToken() bool {
	return a.UseStandardAuth || !a.UseBasicAuth && !a.EnableJWT && !a.UseOAuth2 && !a.SignatureChecking
}

// Place returns where the credentials of one kind are found, by the kind's name
// in auth_configs; never nil.
func (a *API) Place(kind string) *Auth {
	if c := a.AuthConfigs[kind]; c != nil {
		return c
	}
	return &Auth{}
}

// HasPassword tells whether the session is that of a user, who is known by a
// name and a password.
func (s *Session) HasPassword() bool { return s.BasicAuth != nil && s.BasicAuth.Password != "" }

// TokenSecret returns what verifies the tokens that name the key, "" when it has
// no such secret. A key with one is named by all who see its tokens: the name by
// itself opens nothing.
func (s *Session) TokenSecret() string {
	if s.Extra == nil {
		return ""
	}
	return s.Extra.JWT.Value()
}

// OAuthClient returns the id of the OAuth client whose tokens stand for the
// session, "" when it is a key's or a user's.
func (s *Session) OAuthClient() string {
	if s.Extra == nil {
		return ""
	}
	return s.Extra.OAuthClientID
}

// Hide leaves out what nobody is told.
func (s *Session) Hide() {
	if s.BasicAuth != nil {
		s.BasicAuth.Password = ""
	}
	if s.TokenSecret() != "" {
		s.Extra.JWT.Secret = ""
	}
}

// bases are the identities that may count where callers show several: by name in
// base_identity_provided_by, the member that turns one on, and whether it is on.
var bases = []struct {
	name, member string
	on           func(*API) bool
}{
	{"auth_token", "use_standard_auth", (*API).UsesToken},
	{"basic_auth_user", "use_basic_auth", func(a *API) bool { return a.UseBasicAuth }},
	{"jwt_claim", "enable_jwt", func(a *API) bool { return a.EnableJWT }},
	{"oauth_key", "use_oauth2", func(a *API) bool { return a.UseOAuth2 }},
}

// checkAuth checks how callers say who they are.
func (p *Problems) checkAuth(a *API) {
	for _, source := range object.SortedKeys(a.AuthConfigs) {
		p.checkPlace(object.Entry("auth_configs", source), a.AuthConfigs[source])
	}
	p.checkPlace("auth", a.Auth)
	if a.UseKeyless {
		if a.UseBasicAuth || a.EnableJWT || a.UseOAuth2 {
			p.addf("use_keyless", "must be false where use_basic_auth, enable_jwt or use_oauth2 is true: callers would need no credentials")
		}
		return
	}
	if c := a.Token(); a.UsesToken() && c.DisableHeader && !c.UseParam && !c.UseCookie && !c.UseCertificate {
		p.addf(object.Member(a.tokenPath(), "disable_header"), "leaves no place for the token: set use_param or use_cookie, or let it be in a header")
	}
	if a.BaseIdentity == "" {
		return
	}
	for _, b := range bases {
		switch {
		case b.name != a.BaseIdentity:
		case !b.on(a):
			p.addf("base_identity_provided_by", "names %s, which needs %s to be true", b.name, b.member)
			return
		default:
			return
		}
	}
	p.addf("base_identity_provided_by", "must be auth_token, basic_auth_user, jwt_claim or oauth_key, or left out")
}

// checkPlace checks where credentials are found.
func (p *Problems) checkPlace(path string, c *Auth) {
	if c == nil {
		return
	}
	p.checkHeader(path+".auth_header_name", c.HeaderName)
	if c.ParamName != "" && !isToken(c.ParamName) {
		p.addf(path+".param_name", "must be the name of a query parameter, such as api_key")
	}
	if c.CookieName != "" && !isToken(c.CookieName) {
		p.addf(path+".cookie_name", "must be the name of a cookie, such as session")
	}
}
