package e2e

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// letterTo waits for the newest letter of a kind to an address in the mailbox, and
// returns its text.
func (r *rest) letterTo(address, kind string) string {
	r.t.Helper()
	var text string
	eventually(r.t, kind+" to "+address, func() error {
		var list struct {
			Data []struct{ ID, Kind string }
		}
		r.do(http.MethodGet, "/api/portal/mailbox?q="+url.QueryEscape(address), nil).into(r.t, &list)
		for _, one := range list.Data {
			if one.Kind == kind {
				var letter struct{ Text string }
				r.do(http.MethodGet, "/api/portal/mailbox/"+one.ID, nil).into(r.t, &letter)
				text = letter.Text
				r.do(http.MethodDelete, "/api/portal/mailbox/"+one.ID, nil)
				return nil
			}
		}
		return errors.New("none")
	})
	return text
}

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
	_, up := newScripted(t, noContent)
	s := newUp(t, dataDir(t), nil).startReady()
	r := s.rest()
	r.do(http.MethodPost, "/api/apis", apiDef("orders", "http://"+up, false))
	r.do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "rate": 1000, "per": 1, "access_rights": accessTo("orders")})
	open := func(path string, body object, want int) (in struct {
		ID        string
		AccessKey string `json:"access_key"`
	},
	) {
		t.Helper()
		a := call(t, http.MethodPost, s.admin+"/api/portal/"+path, body)
		if a.status != want {
			t.Fatalf("%s: %s, want %d", path, a, want)
		}
		if want == 200 {
			a.into(t, &in)
		}
		return in
	}
	me := func(session string, want int) {
		t.Helper()
		if a := call(t, http.MethodGet, s.admin+"/api/portal/me", nil, "Authorization", "Bearer "+session); a.status != want {
			t.Errorf("the developer's own record: %s, want %d", a, want)
		}
	}

	const email, first, second = "ann@example.com", "open sesame", "open sesame again"
	open("signup", object{"email": email, "password": first}, 200)
	open("login", object{"email": email, "password": first}, 401)
	token := tokenIn(t, r.letterTo(email, "verify_email"))
	in := open("verify", object{"token": token, "password": first}, 200)
	me(in.AccessKey, 200)
	if a := call(t, http.MethodGet, s.admin+"/api/portal/developers", nil, "Authorization", in.AccessKey); a.status != 403 {
		t.Errorf("a developer lists developers: %s", a)
	}

	var key struct{ RawKey string }
	r.do(http.MethodPost, "/api/portal/developers/"+in.ID+"/keys", object{"apply_policies": []string{"gold"}}).into(t, &key)
	if a := s.awaitUse("/orders/", key.RawKey); a.status >= 300 {
		t.Fatalf("%s", a)
	}
	s.kill()
	s.startReady()
	me(in.AccessKey, 200)

	open("password/forgot", object{"email": strings.ToUpper(email)}, 200)
	token = tokenIn(t, r.letterTo(email, "reset_password_email"))
	open("password/reset", object{"token": token, "password": second}, 200)
	open("password/reset", object{"token": token, "password": second + "!"}, 404)
	me(in.AccessKey, 401)
	open("login", object{"email": email, "password": first}, 401)
	in = open("login", object{"email": email, "password": second}, 200)
	me(in.AccessKey, 200)

	r.do(http.MethodDelete, "/api/portal/developers/"+in.ID, nil)
	eventually(t, "the end of the key", func() error {
		return lacks(call(t, http.MethodGet, s.traffic+"/orders/", nil, "Authorization", key.RawKey).String(), "disallowed")
	})
	me(in.AccessKey, 401)
}
