package bench

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"golang.org/x/crypto/bcrypt"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/jwt"
)

// authenticated are APIs that find credentials in ways of their own. Their
// requests write a key as {plain}.
var authenticated = map[string]func(*definition.API){
	"places":      places,
	"placesstrip": func(a *definition.API) { places(a); a.StripAuthData = true },
	"users":       func(a *definition.API) { a.UseBasicAuth = true },
	"logins": func(a *definition.API) {
		a.UseBasicAuth = true
		a.BasicAuth = &definition.BasicAuthSettings{ExtractFromBody: true, BodyUser: `"user":"([^"]*)"`, BodyPassword: `"password":"([^"]*)"`}
	},
	"ownsigned": func(a *definition.API) { a.EnableJWT, a.JWT = true, &jwt.Settings{Method: jwt.HMAC} },
	"signed": func(a *definition.API) {
		a.EnableJWT = true
		a.JWT = &jwt.Settings{Method: jwt.HMAC, Source: base64.StdEncoding.EncodeToString([]byte(tokenSecret)), DefaultPolicies: []string{"signed"}}
	},
}

func places(a *definition.API) {
	a.AuthConfigs = map[string]*definition.Auth{"authToken": {UseParam: true, ParamName: "api_key", UseCookie: true, CookieName: "session"}}
}

// bob is the header of the user that enrol makes.
const bob = "Authorization: Basic Ym9iOnNlY3JldA=="

// tokenSecret signs the tokens of the API signed.
const tokenSecret = "a secret of the benchmarks, of enough bytes"

// bobsLogin is a body with the credentials of the user that enrol makes.
const bobsLogin = `{"user":"bob","password":"secret"}`

// signedToken is a token for ann that is good until 2100, and that names the key
// of a name, which enrol makes.
func signedToken(kid string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT","kid":"`+kid+`"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"ann","iss":"bench","exp":4102444800}`))
	mac := hmac.New(sha256.New, []byte(tokenSecret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// enrol makes a user whose password is cheap to check the first time, and a key
// that verifies its own tokens.
func enrol(w *world) {
	w.tb.Helper()
	stored, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		w.tb.Fatal(err)
	}
	session := &definition.Session{
		OrgID: "bench", Limits: none, AccessRights: rights("users"),
		BasicAuth: &definition.BasicAuth{Password: string(stored), HashType: "bcrypt"},
	}
	session.AccessRights["logins"] = rights("logins")["logins"]
	app := &definition.Session{OrgID: "bench", Limits: none, AccessRights: rights("ownsigned"), Extra: &definition.Extra{JWT: &jwt.Key{Secret: tokenSecret}}}
	for name, s := range map[string]*definition.Session{"benchbob": session, "benchapp": app} {
		w.Put(name, s)
	}
}
