package definition

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// unknownOf parses data as kind and returns what is said about its unknown members.
func unknownOf(t *testing.T, kind, data string) []string {
	t.Helper()
	of := map[string]Object{"api": new(API), "policy": new(Policy), "session": new(Session)}[kind]
	if err := json.Unmarshal([]byte(data), of); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return of.UnknownMembers().Texts()
}

func TestUnknownMembersAreNamedAtEveryDepth(t *testing.T) {
	const has = "is not known to this release and has no effect"
	version := func(body string) string {
		return `{"version_data": {"versions": {"v.1": {` + body + `}}}}`
	}
	for _, c := range []struct {
		kind, data string
		want       []string
	}{
		{"api", `{"enable_ip_whitelistng": true}`, []string{"enable_ip_whitelistng: " + has + "; did you mean enable_ip_whitelisting?"}},
		{"api", `{"Use_Keyless": true, "own": null}`, []string{"Use_Keyless: " + has + "; did you mean use_keyless?", "own: " + has}},
		{"api", `{"jwt_sauce": "s", "jwt_source": "s"}`, []string{"jwt_sauce: " + has + "; did you mean jwt_source?"}},
		{"api", `{"jwt_sauce": "s"}`, []string{"jwt_sauce: " + has + "; did you mean jwt_source?"}},
		{"api", `{"proxy": {"retries": 3, "target_list": ["http://b", {"wieght": 2}]}}`, []string{"proxy.retries: " + has, "proxy.target_list[1].wieght: " + has + "; did you mean weight?"}},
		{"api", `{"proxy": {"target_list": 5}}`, nil}, // kept for when it is in use
		{"api", `{"proxy": {"transport": {"dial_timeot": 1}}}`, []string{"proxy.transport.dial_timeot: " + has + "; did you mean dial_timeout?"}},
		{"api", `{"auth_configs": {"authToken": {"signature": {"secrt": "s"}}}}`, []string{`auth_configs["authToken"].signature.secrt: ` + has + "; did you mean secret?"}},
		{"api", version(`"expirse": "-1"`), []string{`version_data.versions["v.1"].expirse: ` + has + "; did you mean expires?"}},
		{"api", version(`"extended_paths": {"ignored": [{}, {"pth": "/a", "method_actions": {"GET": {"cod": 1}}}]}`), []string{
			`version_data.versions["v.1"].extended_paths.ignored[1].method_actions["GET"].cod: ` + has + "; did you mean code?",
			`version_data.versions["v.1"].extended_paths.ignored[1].pth: ` + has + "; did you mean path?",
		}},
		{"api", version(`"extended_paths": {"white_lists": []}`), []string{`version_data.versions["v.1"].extended_paths.white_lists: ` + has + "; did you mean white_list?"}},
		{"api", `{"graphql": {"playground": {"enbled": true}, "limits": {"max_dept": 1}}}`, []string{
			"graphql.limits.max_dept: " + has + "; did you mean max_depth?", "graphql.playground.enbled: " + has + "; did you mean enabled?",
		}},
		{"api", `{"custom_middleware": {"auth_chek": {"name": "n"}}}`, []string{"custom_middleware.auth_chek: " + has + "; did you mean auth_check?"}},
		{"api", `{"custom_middleware": "x"}`, []string{"custom_middleware: is not an object and has no effect"}},
		{"api", `{"proxy": {"service_discovery": {"use_discovery": true}}}`, []string{"proxy.service_discovery.use_discovery: " + has}},
		{"api", `{"a.b": 1, "": 2, "x y": 3}`, []string{`"": ` + has, `"a.b": ` + has, `"x y": ` + has}},
		{"policy", `{"quota_mx": 5, "access_rights": {"a": {"limits": 1, "limit": {"rat": 1}}}, "partitions": {"acls": true}}`, []string{
			`access_rights["a"].limit.rat: ` + has + "; did you mean rate?", `access_rights["a"].limits: ` + has + "; did you mean limit?",
			"partitions.acls: " + has + "; did you mean acl?", "quota_mx: " + has + "; did you mean quota_max?",
		}},
		{"policy", `{"slug": "s"}`, []string{"slug: " + has}},
		{"session", `{"expiration": 5, "apply_policys": [], "basic_auth_data": {"pasword": ""}, "access_rights": {"a": {"allowed_urls": [{"uri": "/"}]}}}`, []string{
			`access_rights["a"].allowed_urls[0].uri: ` + has + "; did you mean url?", "apply_policys: " + has + "; did you mean apply_policies?",
			"basic_auth_data.pasword: " + has + "; did you mean password?", "expiration: " + has,
		}},
	} {
		if got := unknownOf(t, c.kind, c.data); !slices.Equal(got, c.want) {
			t.Errorf("%s %s\n got %q\nwant %q", c.kind, c.data, got, c.want)
		}
	}
}

func TestWhatIsHarmlessOrOffIsNotWarnedOf(t *testing.T) {
	data, err := os.ReadFile("testdata/classic.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, data string
		lost       []string // paths
	}{
		{"api", string(data), nil},
		{"api", `{"x-own": 1, "proxy": {"x-team": "a"}, "x-svc-owner": 1}`, []string{"x-svc-owner"}},
		{"api", `{"do_not_track": true, "tag_headers": ["a"], "enable_detailed_recording": true, "expire_analytics_after": 5, "analytics_plugin": {"enable": true}}`, nil},
		{"api", `{"version_data": {"versions": {"v": {"extended_paths": {"track_endpoints": [{"path": "/a"}], "do_not_track_endpoints": [{"path": "/b"}]}}}}}`, nil},
		{"api", `{"certificates": ["c"], "oauth_meta": {"allowed_access_types": ["client_credentials"]}, "notifications": {"shared_secret": ""}}`, []string{"certificates", "oauth_meta"}},
		{"api", `{"proxy": {"transport": {"ssl_ciphers": ["A"], "ssl_max_version": 772, "ssl_force_common_name_check": true}}}`, []string{
			"proxy.transport.ssl_ciphers", "proxy.transport.ssl_force_common_name_check", "proxy.transport.ssl_max_version",
		}},
		{"session", `{"last_check": 5, "x-own": true}`, nil},
		{"policy", `{"graphql_access_rights": {"a": {}}}`, nil},
	} {
		var want []string
		for _, path := range c.lost {
			want = append(want, path+": has no effect in this release")
		}
		got := unknownOf(t, c.kind, c.data)
		if len(c.lost) == 1 && c.lost[0] == "x-svc-owner" {
			want = []string{"x-svc-owner: is not known to this release and has no effect"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %.200s\n got %q\nwant %q", c.kind, c.data, got, want)
		}
	}
}

func TestUnknownMembersAreBounded(t *testing.T) {
	var members []string
	for i := range 5_000 {
		members = append(members, fmt.Sprintf(`"member_%04d": %d`, i, i))
	}
	got := unknownOf(t, "api", "{"+strings.Join(members, ",")+"}")
	if len(got) != maxProblems+1 || got[0] != "member_0000: is not known to this release and has no effect" || got[maxProblems] != "there are further problems, which are not listed" {
		t.Errorf("%d: %q … %q", len(got), got[0], got[len(got)-1])
	}
}

func TestASwitchOfTheCallIsNoPartOfTheObject(t *testing.T) {
	for text, on := range map[string]bool{`{"strict": true}`: true, `{"strict": false}`: false} {
		api, policy, session := new(API), new(Policy), new(Session)
		for _, of := range []Object{api, policy, session} {
			if err := json.Unmarshal([]byte(text), of); err != nil {
				t.Fatal(err)
			}
			if got := of.TakeSwitch("strict"); got != on || of.TakeSwitch("strict") || len(of.UnknownMembers()) > 0 {
				t.Errorf("%T %s: %v, then %q", of, text, got, of.UnknownMembers())
			}
			if out, err := json.Marshal(of); err != nil || strings.Contains(string(out), "strict") {
				t.Errorf("%s, %v", out, err)
			}
		}
	}
	api := new(API)
	if err := json.Unmarshal([]byte(`{"strict": "yes"}`), api); err != nil || api.TakeSwitch("strict") || len(api.UnknownMembers()) != 1 {
		t.Errorf("%v, %q", err, api.UnknownMembers())
	}
}

// Editors find the schema of a file by its member $schema; elsewhere the name is unknown.
func TestTheSchemaOfAFileIsNoUnknownMember(t *testing.T) {
	for text, want := range map[string]int{
		`{"$schema": "./api.schema.json", "proxy": {"listen_path": "/a", "target_url": "http://b"}}`: 0,
		`{"proxy": {"$schema": "a", "listen_path": "/a", "target_url": "http://b"}}`:                 1,
	} {
		a, err := ParseAPI([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := a.UnknownMembers(); len(got) != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
