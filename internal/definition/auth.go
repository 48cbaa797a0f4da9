package definition

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A CredentialKind is how the session behind a credential is found. A credential of
// one kind never opens a session of another kind.
type CredentialKind uint8

// The credential kinds.
const (
	KeyCredential    CredentialKind = iota // a secret key
	UserCredential                         // a user name, with a password
	SignerCredential                       // the key's name in a token that is signed with the key's own secret
	ClientCredential                       // a secret access token of an OAuth client
)

// String returns the kind's name.
func (k CredentialKind) String() string {
	return [...]string{"key", "user", "signer", "client"}[k]
}

// CredentialKind returns the kind of credential that finds the session.
func (s *Session) CredentialKind() CredentialKind {
	switch {
	case s.HasPassword():
		return UserCredential
	case s.TokenSecret() != "":
		return SignerCredential
	case s.OAuthClient() != "":
		return ClientCredential
	}
	return KeyCredential
}

// An AuthMode is one way in which clients authenticate.
type AuthMode struct {
	Name       string         // value of base_identity_provided_by
	Member     string         // member of the API that turns the mode on
	Config     string         // entry of auth_configs that says where the credential is found
	Credential CredentialKind // kind of the sessions that the mode finds
	Needs      string         // what a request must carry

	on func(*API) bool
}

// The names of the auth modes.
const (
	BasicAuthMode = "basic_auth_user"
	JWTMode       = "jwt_claim"
	OAuthMode     = "oauth_key"
	TokenMode     = "auth_token"
)

const tokenConfig = "authToken"

// AuthModes lists every auth mode, in the order in which requests pass them. The
// session of the last one counts unless base_identity_provided_by names another.
var AuthModes = [...]AuthMode{
	{BasicAuthMode, "use_basic_auth", "basic", UserCredential, "a user name and password (RFC 7617)", func(a *API) bool { return a.UseBasicAuth }},
	{JWTMode, "enable_jwt", "jwt", SignerCredential, "a signed JSON Web Token (RFC 7519)", func(a *API) bool { return a.EnableJWT }},
	{OAuthMode, "use_oauth2", "oauth", ClientCredential, "an OAuth 2.0 access token (RFC 6750)", func(a *API) bool { return a.UseOAuth2 }},
	{TokenMode, "use_standard_auth", tokenConfig, KeyCredential, "a key", (*API).UsesToken},
}

// On reports whether the API uses the mode.
func (m *AuthMode) On(a *API) bool { return m.on(a) }

// joinAuthModes joins one text of each mode: "a, b or c".
func joinAuthModes(text func(*AuthMode) string, modes []AuthMode) string {
	var all []string
	for i := range modes {
		all = append(all, text(&modes[i]))
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// UsesToken reports whether clients send a key: when the API says so, or uses no
// other auth mode.
func (a *API) UsesToken() bool {
	return a.UseStandardAuth || !a.UseBasicAuth && !a.EnableJWT && !a.UseOAuth2 && !a.SignatureChecking
}

// Place returns where a credential is found, by its entry in auth_configs. It never
// returns nil.
func (a *API) Place(config string) *Auth {
	if c := a.AuthConfigs[config]; c != nil {
		return c
	}
	if config == tokenConfig && a.Auth != nil {
		return a.Auth
	}
	return &Auth{}
}

// Token returns where the API's token is found. It never returns nil.
func (a *API) Token() *Auth { return a.Place(tokenConfig) }

// InitHeaders returns the names of the headers whose values clients may send in the
// payload of connection_init.
func (a *API) InitHeaders() (names []string) {
	for i := range AuthModes {
		m := &AuthModes[i]
		if place := a.Place(m.Config); m.On(a) && place.UseConnectionInit && !a.UseKeyless {
			names = append(names, place.Header())
		}
	}
	return names
}

// HasPassword reports whether the session belongs to a user with a name and a
// password.
func (s *Session) HasPassword() bool { return s.BasicAuth != nil && s.BasicAuth.Password != "" }

// TokenSecret returns the secret or public key that verifies tokens that name the
// key, "" if the key has none. The name of a key with a secret is public: it appears
// in tokens, and does not authenticate by itself.
func (s *Session) TokenSecret() string {
	if s.Extra == nil {
		return ""
	}
	return s.Extra.JWT.Value()
}

// OAuthClient returns the id of the OAuth client that the session belongs to, "" for
// the session of a key or a user.
func (s *Session) OAuthClient() string {
	if s.Extra == nil {
		return ""
	}
	return s.Extra.OAuthClientID
}

// Hide removes the password and the token secret, which are never returned.
func (s *Session) Hide() {
	if s.BasicAuth != nil {
		s.BasicAuth.Password = ""
	}
	if s.TokenSecret() != "" {
		s.Extra.JWT.Secret = ""
	}
}

// checkAuth checks how clients authenticate.
func (p *Problems) checkAuth(a *API) {
	for _, source := range object.SortedKeys(a.AuthConfigs) {
		p.checkPlace(object.Entry("auth_configs", source), a.AuthConfigs[source])
	}
	p.checkPlace("auth", a.Auth)
	if a.UseKeyless {
		others := AuthModes[:len(AuthModes)-1] // all but the token, which is also the default
		if slices.ContainsFunc(others, func(m AuthMode) bool { return m.On(a) }) {
			p.addf("use_keyless", "must be false where %s is true: callers would need no credentials", joinAuthModes(func(m *AuthMode) string { return m.Member }, others))
		}
		return
	}
	if c := a.Token(); a.UsesToken() && c.DisableHeader && !c.UseParam && !c.UseCookie && !c.UseCertificate {
		p.addf(object.Member(a.tokenPath(), "disable_header"), "leaves no place for the token: set use_param or use_cookie, or let it be in a header")
	}
	p.checkBaseIdentity(a)
}

// checkBaseIdentity checks that base_identity_provided_by names a mode that is on.
func (p *Problems) checkBaseIdentity(a *API) {
	if a.BaseIdentity == "" {
		return
	}
	const path = "base_identity_provided_by"
	switch i := slices.IndexFunc(AuthModes[:], func(m AuthMode) bool { return m.Name == a.BaseIdentity }); {
	case i < 0:
		p.addf(path, "must be %s, or left out", joinAuthModes(func(m *AuthMode) string { return m.Name }, AuthModes[:]))
	case !AuthModes[i].On(a):
		p.addf(path, "names %s, which needs %s to be true", AuthModes[i].Name, AuthModes[i].Member)
	}
}

// checkPlace checks where a credential is found.
func (p *Problems) checkPlace(path string, c *Auth) {
	if c == nil {
		return
	}
	p.checkHeader(path+".auth_header_name", c.HeaderName)
	if c.UseConnectionInit && c.DisableHeader {
		p.addf(path+".use_connection_init", "must be false where disable_header is true: what connection_init holds stands for the header")
	}
	if c.ParamName != "" && !isToken(c.ParamName) {
		p.addf(path+".param_name", "must be the name of a query parameter, such as api_key")
	}
	if c.CookieName != "" && !isToken(c.CookieName) {
		p.addf(path+".cookie_name", "must be the name of a cookie, such as session")
	}
}
