package traffic

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// proxyHeaders is an API that adds headers to what is proxied.
func proxyHeaders(id, target string, proxy object) object {
	def := rig.GraphDef(id, target, false, object{"proxy": proxy})
	def["enable_context_vars"] = true
	return def
}

// The headers of graphql.proxy go up with operations, and with them only those
// that are for proxied traffic.
func TestHeadersOfProxiedOperations(t *testing.T) {
	t.Parallel()
	added := object{
		"X-Path": "$svc_context.path", "X-Who": "client $svc_context.headers_X_Client", "X-Both": "gateway", "X-Team": "$svc_meta.team", "X-Plain": "as it is", "X-None": "$svc_context.nothing",
	}
	const introspection = "secret-of-the-introspection"
	rig.Plant(introspection)
	g := newGraphs(t, nil, nil, func(target string) []object {
		return []object{
			proxyHeaders("g", target, object{"request_headers": added, "auth_headers": object{"X-Auth": introspection, "Authorization": introspection}}),
			proxyHeaders("keeps", target, object{
				"request_headers": added, "features": object{"use_immutable_headers": true},
				"request_headers_rewrite": object{"X-Set": object{"value": "forced"}, "X-Keep": object{"value": "v", "remove": true}, "X-Gone": object{"value": "", "remove": true}},
			}),
		}
	})
	key := g.newKey(object{"access_rights": rig.AccessTo("g", "keeps"), "meta_data": object{"team": "blue\r\nX-Evil: 1"}})
	for _, c := range []struct {
		api  string
		want map[string][]string
	}{
		{"g", map[string][]string{
			"X-Both": {"client", "gateway"}, "X-Set": {"client"}, "X-Keep": {"v"}, "X-Gone": {"here"},
		}},
		{"keeps", map[string][]string{
			"X-Both": {"client"}, "X-Set": {"forced"}, "X-Keep": {"v"}, "X-Gone": nil,
		}},
	} {
		for _, inURL := range []bool{false, true} {
			headers := []string{"Authorization", key, "X-Client", "a: b", "X-Both", "client", "X-Set", "client", "X-Keep", "v", "X-Gone", "here"}
			if inURL {
				rig.Call(t, "GET", g.traffic.Traffic+"/"+c.api+"/?query={secret}", nil, headers...)
			} else {
				g.post(c.api, secretBody, headers...)
			}
			reached := g.up.reached()
			if len(reached) != 1 {
				t.Fatalf("%s: the upstream saw %q", c.api, reached)
			}
			head, got := reached[0].head, reached[0].header
			for name, want := range c.want {
				values := slices.Sorted(slices.Values(got[name]))
				if !slices.Equal(values, want) {
					t.Errorf("%s: %s is %q, want %q", c.api, name, values, want)
				}
			}
			for name, want := range map[string]string{"X-Path": "/" + c.api + "/", "X-Who": "client a: b", "X-Plain": "as it is", "X-None": "", "Authorization": key} {
				if got.Get(name) != want {
					t.Errorf("%s: %s is %q, want %q", c.api, name, got[name], want)
				}
			}
			if got.Get("X-Evil") != "" || !strings.HasPrefix(got.Get("X-Team"), "blue") || strings.Contains(head, introspection) {
				t.Errorf("%s: the upstream saw %s", c.api, head)
			}
		}
	}
	g.post("keeps", secretBody, "Authorization", key, "X-Keep", "w")
	if reached := g.up.reached(); len(reached) != 1 || reached[0].header["X-Keep"] != nil || reached[0].header.Get("X-Both") != "gateway" || reached[0].header.Get("X-Set") != "forced" {
		t.Errorf("without the client's own: %q", reached)
	}
	// Introspection by a client is proxied traffic.
	g.ask("g", key, introspections[0])
	if reached := g.up.reached(); len(reached) != 1 || reached[0].header.Get("X-Plain") == "" || strings.Contains(reached[0].head, introspection) {
		t.Errorf("introspection: %q", reached)
	}
}
