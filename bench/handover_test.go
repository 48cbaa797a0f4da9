package bench

import (
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

// handing are the APIs whose calls go on to others, or to other hosts.
var handing = map[string]func(*definition.API){
	"onward": func(a *definition.API) { a.Proxy.TargetURL = "svc://plain/behind" },
	"onwardchanged": func(a *definition.API) {
		version(definition.Version{GlobalHeaders: map[string]string{"X-Client": "$svc_context.remote_addr"}, GlobalHeadersRemove: []string{"Accept"}})(a)
		a.Proxy.TargetURL = "svc://plain"
	},
	"family": func(a *definition.API) {
		a.UseKeyless = true
		a.Selector = &definition.VersionSelector{
			Enabled: true, Name: "v1", Location: definition.VersionInHeader, Key: "X-Api-Version", Versions: map[string]string{"v2": "plain", "v3": "nowhere"},
		}
	},
	"away": func(a *definition.API) {
		version(definition.Version{UseExtendedPaths: true, ExtendedPaths: testenv.Part[definition.ExtendedPaths](
			`{"url_rewrites": [{"path": "/users/{id}", "match_pattern": "^/users/(\\d+)$", "rewrite_to": "` + a.Proxy.TargetURL + `/v2/$1"}]}`,
		)})(a)
	},
}
