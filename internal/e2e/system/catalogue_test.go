package system

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// TestWhatAPortalOffersFollowsWhatItsOperatorsSay lets operators fill a catalogue,
// and looks at it as visitors and developers do, over restarts.
func TestWhatAPortalOffersFollowsWhatItsOperatorsSay(t *testing.T) {
	t.Parallel()
	up := testenv.Origin(t, rig.Echo)
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	r := s.Rest()
	def := rig.APIDef("orders", "http://"+up, false)
	r.Do(http.MethodPost, "/api/apis", def)
	r.Do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "Gold", "rate": 10, "per": 60, "access_rights": rig.AccessTo("orders")})

	text := "openapi: 3.0.3\ninfo: {title: Orders, description: 'At http://" + up + "/x <script>alert(1)</script>'}\nservers: [{url: 'http://" + up + "'}]\npaths: {/a: {get: {responses: {'200': {description: fine}}}}}\n"
	var made struct{ Message string }
	r.Do(http.MethodPost, "/api/portal/documentation", object{"api_id": "orders", "doc_type": "swagger", "documentation": base64.StdEncoding.EncodeToString([]byte(text))}).Into(t, &made)
	r.Do(http.MethodPost, "/api/portal/catalogue", object{"apis": []object{
		{"id": "offer", "name": "Orders", "show": true, "api_id": "orders", "policy_id": "gold", "documentation": made.Message},
		{"id": "hidden", "name": "Hidden", "api_id": "orders", "policy_id": "gold"},
	}})

	see := func(path, who string, want int, parts ...string) {
		t.Helper()
		a := rig.Call(t, http.MethodGet, s.Admin+"/api/portal/public/"+path, nil, "Authorization", who)
		if a.Status != want {
			t.Fatalf("%s: %s, want %d", path, a, want)
		}
		for _, part := range parts {
			if !strings.Contains(string(a.Body), part) {
				t.Errorf("%s: %s is not in %s", path, part, a)
			}
		}
		if strings.Contains(string(a.Body), up) || strings.Contains(string(a.Body), "<") {
			t.Errorf("%s tells the upstream, or has HTML: %s", path, a)
		}
	}
	for range 2 {
		see("catalogue", "", 200, `"id":"offer"`, `"10 requests a minute"`, `"Pages":1`)
		see("catalogue/offer/documentation", "", 200, "{gateway}/x", `\u003cp\u003efine`)
		see("catalogue/hidden", "", 404)
		s.Kill()
		s.StartReady()
	}

	r = s.Rest()
	r.Do(http.MethodPost, "/api/portal/configuration", object{"catalogue_login_only": true, "disable_verification": true})
	see("configuration", "", 200, `"catalogue_login_only":true`)
	see("catalogue", "", 401)
	a := rig.Call(t, http.MethodPost, s.Admin+"/api/portal/signup", object{"email": "ann@example.com", "password": "open sesame"})
	var in struct {
		AccessKey string `json:"access_key"`
	}
	a.Into(t, &in)
	see("catalogue", in.AccessKey, 200, `"id":"offer"`)
	see("catalogue/offer", "Bearer "+in.AccessKey, 200, `"listen_path"`)

	r.Do(http.MethodDelete, "/api/portal/policies/gold", nil)
	see("catalogue", in.AccessKey, 200, `"Data":[]`)
	if list := r.Do(http.MethodGet, "/api/portal/catalogue/entries", nil); !strings.Contains(string(list.Body), "the policy gold does not exist") {
		t.Errorf("operators do not learn why: %s", list)
	}
}
