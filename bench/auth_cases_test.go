package bench

import (
	"context"

	"golang.org/x/crypto/bcrypt"

	"github.com/sluicegate/sluice/internal/definition"
)

// authenticated are APIs that find credentials in ways of their own. Their
// requests write a key as {plain}.
var authenticated = map[string]func(*definition.API){
	"places":      places,
	"placesstrip": func(a *definition.API) { places(a); a.StripAuthData = true },
	"users":       func(a *definition.API) { a.UseBasicAuth = true },
}

func places(a *definition.API) {
	a.AuthConfigs = map[string]*definition.Auth{"authToken": {UseParam: true, ParamName: "api_key", UseCookie: true, CookieName: "session"}}
}

// bob is the header of the user that enrol makes.
const bob = "Authorization: Basic Ym9iOnNlY3JldA=="

// enrol makes a user whose password is cheap to check the first time.
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
	if err := w.store.Put(context.Background(), w.hasher.Hash("benchbob"), session); err != nil {
		w.tb.Fatal(err)
	}
}
