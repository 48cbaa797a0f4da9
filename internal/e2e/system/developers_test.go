package system

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// tokenIn returns the token of the link in a letter.
func tokenIn(t testing.TB, letter string) string {
	t.Helper()
	found := regexp.MustCompile(`token=([0-9A-Za-z]{43})\b`).FindStringSubmatch(letter)
	if found == nil {
		t.Fatalf("no token in %s", letter)
	}
	return found[1]
}

func TestADeveloperComesStaysAndGoes(t *testing.T) {
	t.Parallel()
	up := testenv.Origin(t, rig.Echo)
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	r := s.Rest()
	r.Do(http.MethodPost, "/api/apis", rig.APIDef("orders", "http://"+up, false))
	r.Do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "rate": 1000, "per": 1, "access_rights": rig.AccessTo("orders")})
	open := func(path string, body object, want int) (in struct {
		ID        string
		AccessKey string `json:"access_key"`
	},
	) {
		t.Helper()
		a := rig.Call(t, http.MethodPost, s.Admin+"/api/portal/"+path, body)
		if a.Status != want {
			t.Fatalf("%s: %s, want %d", path, a, want)
		}
		if want == 200 {
			a.Into(t, &in)
		}
		return in
	}
	me := func(session string, want int) {
		t.Helper()
		if a := rig.Call(t, http.MethodGet, s.Admin+"/api/portal/me", nil, "Authorization", "Bearer "+session); a.Status != want {
			t.Errorf("the developer's own record: %s, want %d", a, want)
		}
	}

	const email, first, second = "ann@example.com", "open sesame", "open sesame again"
	open("signup", object{"email": email, "password": first}, 200)
	open("login", object{"email": email, "password": first}, 401)
	token := tokenIn(t, r.LetterTo(email, "verify_email"))
	in := open("verify", object{"token": token, "password": first}, 200)
	me(in.AccessKey, 200)
	if a := rig.Call(t, http.MethodGet, s.Admin+"/api/portal/developers", nil, "Authorization", in.AccessKey); a.Status != 403 {
		t.Errorf("a developer lists developers: %s", a)
	}

	var key struct{ RawKey string }
	r.Do(http.MethodPost, "/api/portal/developers/"+in.ID+"/keys", object{"apply_policies": []string{"gold"}}).Into(t, &key)
	if a := s.AwaitUse("/orders/", key.RawKey); a.Status >= 300 {
		t.Fatalf("%s", a)
	}
	s.Kill()
	s.StartReady()
	me(in.AccessKey, 200)

	open("password/forgot", object{"email": strings.ToUpper(email)}, 200)
	token = tokenIn(t, r.LetterTo(email, "reset_password_email"))
	open("password/reset", object{"token": token, "password": second}, 200)
	open("password/reset", object{"token": token, "password": second + "!"}, 404)
	me(in.AccessKey, 401)
	open("login", object{"email": email, "password": first}, 401)
	in = open("login", object{"email": email, "password": second}, 200)
	me(in.AccessKey, 200)

	r.Do(http.MethodDelete, "/api/portal/developers/"+in.ID, nil)
	rig.Eventually(t, "the end of the key", func() error {
		return rig.Lacks(rig.Call(t, http.MethodGet, s.Traffic+"/orders/", nil, "Authorization", key.RawKey).String(), "disallowed")
	})
	me(in.AccessKey, 401)
}
