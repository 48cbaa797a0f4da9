package reference

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// The defaults in the reference are those that the program works with.
func TestDefaultsAreThoseOfTheProgram(t *testing.T) {
	a, err := definition.ParseAPI([]byte(`{"proxy": {"listen_path": "/", "target_url": "http://a", "enable_load_balancing": true, "target_list": [{"url": "http://a"}],
		"health_check": {"path": "/"}, "circuit_breaker": {"threshold_percent": 1, "samples": 1}},
		"uptime_tests": {"check_list": [{"url": "http://a"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	words := func(list []string) string {
		last := len(list) - 1
		if last == 0 {
			return list[0]
		}
		return strings.Join(list[:last], ", ") + " and " + list[last]
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%g", d.Seconds()) }
	rules := a.Upstreams()
	cors, cache := new(definition.CORS), new(definition.CacheOptions)
	api := kindsOf(t)[0]
	for path, want := range map[string]string{
		"active":                                        fmt.Sprint(a.IsActive()),
		"auth.auth_header_name":                         new(definition.Auth).Header(),
		"CORS.allowed_origins":                          words(cors.Origins()),
		"CORS.allowed_methods":                          words(cors.Methods()),
		"CORS.allowed_headers":                          words(cors.Headers()),
		"cache_options.cache_timeout":                   seconds(cache.Lifetime()),
		"cache_options.cache_control_ttl_header":        cache.LifetimeHeader(),
		"proxy.target_list.weight":                      fmt.Sprint(rules.Targets[0].Weight),
		"proxy.ejection.failures":                       fmt.Sprint(rules.Ejection.Failures),
		"proxy.ejection.seconds":                        seconds(rules.Ejection.For),
		"proxy.ejection.longest":                        seconds(rules.Ejection.Longest),
		"proxy.health_check.method":                     rules.Check.Method,
		"proxy.health_check.interval":                   seconds(rules.Check.Interval),
		"proxy.health_check.timeout":                    seconds(rules.Check.Timeout),
		"proxy.health_check.healthy":                    fmt.Sprint(rules.Check.Healthy),
		"proxy.health_check.unhealthy":                  fmt.Sprint(rules.Check.Unhealthy),
		"proxy.circuit_breaker.return_to_service_after": seconds(rules.Breaker.Return),
		"uptime_tests.check_list.timeout":               seconds(rules.Uptime[0].Timeout) + " seconds",
	} {
		found := api.Find(path)
		if len(found) == 0 || found[0].Default != want {
			t.Errorf("%s: the program has %s, the reference %v", path, want, found)
		}
	}
}

// The modes of base_identity_provided_by are all auth modes, also in its description.
func TestTheBaseIdentityNamesEveryMode(t *testing.T) {
	api := kindsOf(t)[0]
	m := api.Find("base_identity_provided_by")[0]
	var modes []string
	for i := range definition.AuthModes {
		mode := definition.AuthModes[i].Name
		if modes = append(modes, mode); !strings.Contains(m.Text, mode) {
			t.Errorf("%q does not name %s", m.Text, mode)
		}
	}
	slices.Sort(modes)
	if !slices.Equal(slices.Sorted(slices.Values(m.Allowed)), modes) {
		t.Errorf("the modes are %v, allowed are %v", modes, m.Allowed)
	}
}

func TestCommentsAreReadAsTheyAreWritten(t *testing.T) {
	type object struct {
		Number int      `json:"number,omitempty"`
		Text   string   `json:"text"`
		List   []string `json:"list"`
	}
	of := reflect.TypeFor[object]()
	at := of.PkgPath() + "." + of.Name() + "."
	for _, c := range []struct{ field, comment, bounds, def, unit, since string }{
		{"Number", "Seconds to wait, from 0.5 to 1,000. Default: 5.", "0.5 to 1000", "5", "seconds", FirstRelease},
		{"Number", "Seconds to wait, at least 10. Default: 0, on demand.\nSince: 1.2", "at least 10", "0, on demand", "seconds", "1.2"},
		{"Number", "Share, above 0 and up to 1.", "above 0, at most 1", "0", "", FirstRelease},
		{"Number", "Unix seconds of the end.", "", "0", "Unix seconds", FirstRelease},
		{"Text", "enforce (default), or measure.", "", "enforce", "", FirstRelease},
		{"Text", "Name, at most 20 bytes, of a key of at least 32 bytes.", "at most 20 bytes", `""`, "", FirstRelease},
		{"List", "Names, at most 20 of each.", "", "none", "", FirstRelease},
		{"List", "Statuses, at most 20. Default: 200 to 399.", "at most 20 entries", "200 to 399", "", FirstRelease},
	} {
		all := &Comments{map[string]comment{at + c.field: split(c.comment)}}
		for _, m := range all.Of(of) {
			if m.field.Name == c.field && (m.Range() != c.bounds || m.Default != c.def || m.Unit != c.unit || m.Since != c.since) {
				t.Errorf("%q: range %q, default %q, unit %q, since %q", c.comment, m.Range(), m.Default, m.Unit, m.Since)
			}
		}
	}
}
