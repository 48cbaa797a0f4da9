package e2e

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

// TestWhatAPortalOffersFollowsWhatItsOperatorsSay lets operators fill a catalogue,
// and looks at it as visitors and developers do, over restarts.
func TestWhatAPortalOffersFollowsWhatItsOperatorsSay(t *testing.T) {
	t.Parallel()
	_, up := newScripted(t, noContent)
	s := newUp(t, dataDir(t), nil).startReady()
	r := s.rest()
	def := apiDef("orders", "http://"+up, false)
	r.do(http.MethodPost, "/api/apis", def)
	r.do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "Gold", "rate": 10, "per": 60, "access_rights": accessTo("orders")})

	text := "openapi: 3.0.3\ninfo: {title: Orders, description: 'At http://" + up + "/x <script>alert(1)</script>'}\nservers: [{url: 'http://" + up + "'}]\npaths: {/a: {get: {responses: {'200': {description: fine}}}}}\n"
	var made struct{ Message string }
	r.do(http.MethodPost, "/api/portal/documentation", object{"api_id": "orders", "doc_type": "swagger", "documentation": base64.StdEncoding.EncodeToString([]byte(text))}).into(t, &made)
	r.do(http.MethodPost, "/api/portal/catalogue", object{"apis": []object{
		{"id": "offer", "name": "Orders", "show": true, "api_id": "orders", "policy_id": "gold", "documentation": made.Message},
		{"id": "hidden", "name": "Hidden", "api_id": "orders", "policy_id": "gold"},
	}})

	see := func(path, who string, want int, parts ...string) {
		t.Helper()
		a := call(t, http.MethodGet, s.admin+"/api/portal/public/"+path, nil, "Authorization", who)
		if a.status != want {
			t.Fatalf("%s: %s, want %d", path, a, want)
		}
		for _, part := range parts {
			if !strings.Contains(string(a.body), part) {
				t.Errorf("%s: %s is not in %s", path, part, a)
			}
		}
		if strings.Contains(string(a.body), up) || strings.Contains(string(a.body), "<") {
			t.Errorf("%s tells the upstream, or has HTML: %s", path, a)
		}
	}
	for range 2 {
		see("catalogue", "", 200, `"id":"offer"`, `"10 requests a minute"`, `"Pages":1`)
		see("catalogue/offer/documentation", "", 200, "{gateway}/x", `\u003cp\u003efine`)
		see("catalogue/hidden", "", 404)
		s.kill()
		s.startReady()
	}

	r = s.rest()
	r.do(http.MethodPost, "/api/portal/configuration", object{"catalogue_login_only": true, "disable_verification": true})
	see("configuration", "", 200, `"catalogue_login_only":true`)
	see("catalogue", "", 401)
	a := call(t, http.MethodPost, s.admin+"/api/portal/signup", object{"email": "ann@example.com", "password": "open sesame"})
	var in struct {
		AccessKey string `json:"access_key"`
	}
	a.into(t, &in)
	see("catalogue", in.AccessKey, 200, `"id":"offer"`)
	see("catalogue/offer", "Bearer "+in.AccessKey, 200, `"listen_path"`)

	r.do(http.MethodDelete, "/api/portal/policies/gold", nil)
	see("catalogue", in.AccessKey, 200, `"Data":[]`)
	if list := r.do(http.MethodGet, "/api/portal/catalogue/entries", nil); !strings.Contains(string(list.body), "the policy gold does not exist") {
		t.Errorf("operators do not learn why: %s", list)
	}
}
