package catalogue

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

func deletePolicy(id string) func(context.Context, *store.Change) error {
	return func(ctx context.Context, c *store.Change) error { return c.DeletePolicy(ctx, id, 0) }
}

func deleteAPI(id string) func(context.Context, *store.Change) error {
	return func(ctx context.Context, c *store.Change) error { return c.DeleteAPI(ctx, id, 0, true) }
}

// document stores a document and returns its id.
func (b *bench) document(kind, text, api string) string {
	b.t.Helper()
	return b.Call("POST", docPath, "editor", fmt.Sprintf(`{"api_id":%q,"doc_type":%q,"documentation":%q}`, api, kind, base64.StdEncoding.EncodeToString([]byte(text)))).Want(200).Says(`"Meta":null`).Text("Message")
}

// offered returns the names of what a visitor sees.
func (b *bench) offered(who, query string) (names []string) {
	b.t.Helper()
	var list struct{ Data []struct{ Name string } }
	if err := json.Unmarshal(b.Call("GET", publicPath+query, who, "").Want(200).Body, &list); err != nil {
		b.t.Fatal(err)
	}
	for _, o := range list.Data {
		names = append(names, o.Name)
	}
	return names
}

func TestDevelopersSeeWhatIsShownAndInUse(t *testing.T) {
	b := start(t)
	b.Call("POST", wholePath, "editor", `{"apis":[{"name":"Gold","show":true,"api_id":"orders","policy_id":"gold","internal_note":"call Ann"},{"name":"Hidden","api_id":"orders","policy_id":"gold"},
		{"name":"Not yet","show":true,"policy_id":"draft"},{"name":"Open","show":true,"api_id":"stock","is_keyless":true},{"name":"Silver","show":true,"policy_id":"silver"}]}`).Want(200)
	ids := b.ids()
	if got := b.offered("", ""); fmt.Sprint(got) != "[Gold Open Silver]" {
		t.Errorf("offered %v", got)
	}
	if got := b.offered("slp_one", "?q=go"); fmt.Sprint(got) != "[Gold]" {
		t.Errorf("offered %v", got)
	}
	if got := b.offered("", "?p=2&page_size=2"); fmt.Sprint(got) != "[Silver]" {
		t.Errorf("second page %v", got)
	}
	gold := b.Call("GET", publicPath+"/"+ids["Gold"], "", "").Want(200).
		Says(`"api_name":"Orders"`, `"listen_path":"/orders"`, `"policy_name":"Gold"`, `"5 requests a second"`, `"100,000 requests a day"`, `"GraphQL operations up to 3 levels deep"`, `"auth_type":"authToken"`, `"require_key_approval":true`, `"documented":false`)
	gold.Hides("10.0.0.1", "target", "call Ann", "internal_note", "org_id", "mail")
	b.Call("GET", publicPath+"/"+ids["Open"], "", "").Want(200).Says(`"is_keyless":true`, `"limits":null`, `"domain":"stock.example.com"`).Hides("up.internal")
	b.Call("GET", publicPath+"/"+ids["Silver"], "", "").Want(200).Says("any number of requests")
	for _, name := range []string{"Hidden", "Not yet"} {
		b.Call("GET", publicPath+"/"+ids[name], "", "").Want(404)
		b.Call("GET", publicPath+"/"+ids[name]+"/documentation", "", "").Want(404)
	}
	b.publish("one", deletePolicy("gold"))
	b.publish("one", deleteAPI("stock"))
	if got := b.offered("", ""); fmt.Sprint(got) != "[Silver]" {
		t.Errorf("after policy and API were deleted: offered %v", got)
	}
	b.Call("GET", publicPath+"/"+ids["Gold"], "", "").Want(404)
	for _, query := range []string{"?p=x", "?p=-1", "?page_size=1000"} {
		b.Call("GET", publicPath+query, "", "").Want(400)
	}
	b.Call("GET", publicPath+"?org_id=nobody", "", "").Want(404).Says("org_id: there is no such organisation")
	b.Call("GET", "/api/portal/public/configuration?org_id=nobody", "", "").Want(404)
}

func TestACatalogueCanBeForDevelopersAlone(t *testing.T) {
	b := start(t)
	id := b.Call("POST", entryPath, "editor", `{"name":"Gold","show":true,"policy_id":"gold","documentation":"`+b.document("markdown", "# hi", "")+`"}`).Want(201).Text("Message")
	b.Call("POST", configPath, "editor", `{"catalogue_login_only":true}`).Want(200)
	for _, path := range []string{publicPath, publicPath + "/" + id, publicPath + "/" + id + "/documentation"} {
		for _, who := range []string{"", "slp_unknown", "slp_two", "editor"} {
			if who == "slp_two" {
				path += "?org_id=one"
			}
			b.Call("GET", path, who, "").Want(401)
		}
		b.Call("GET", path, "slp_one", "").Want(200)
	}
	b.Call("GET", "/api/portal/public/configuration", "", "").Want(200).Says(`"catalogue_login_only":true`, `"org_id":"one"`)
	b.Call("GET", "/api/portal/public/configuration", "slp_two", "").Want(200).Says(`"catalogue_login_only":false`, `"org_id":"two"`)
	b.offered("slp_two", "")
}

func TestAnEntryCanSayOtherwise(t *testing.T) {
	b := start(t)
	b.Call("POST", configPath, "editor", `{"key_request_fields":["why"],"enable_multi_selection":true,"redirect_hosts":["example.com"],"redirect_to":"https://example.com/ask","redirect_on_key_request":true}`).Want(200)
	b.Call("POST", wholePath, "editor", `{"apis":[
		{"name":"as the others","show":true,"policy_id":"gold","config":{"override":false,"require_key_approval":false,"key_request_fields":["no"]}},
		{"name":"otherwise","show":true,"policy_id":"silver","config":{"override":true,"require_key_approval":false,"key_request_fields":["size"],"catalogue_login_only":true}},
		{"name":"forgot to say","show":true,"policy_id":"silver","config":{"override":true}}]}`).Want(200)
	ids := b.ids()
	b.Call("GET", publicPath+"/"+ids["as the others"], "", "").Want(200).Says(`"key_request_fields":["why"]`, `"require_key_approval":true`, `"redirect_to":"https://example.com/ask"`, `"redirect_on_key_request":true`, `"enable_multi_selection":true`)
	b.Call("GET", publicPath+"/"+ids["otherwise"], "", "").Want(200).Says(`"key_request_fields":["size"]`, `"require_key_approval":false`, `"redirect_to":""`, `"redirect_on_key_request":false`)
	b.Call("GET", publicPath+"/"+ids["forgot to say"], "", "").Want(200).Says(`"require_key_approval":true`)

	e, err := b.service.EntryByPolicy(t.Context(), "one", "silver")
	if err != nil || e.Name != "otherwise" {
		t.Fatalf("entry %+v, %v", e, err)
	}
	if c, err := b.service.ConfigurationFor(t.Context(), "one", e); err != nil || c.RequireKeyApproval || !slices.Equal(c.KeyRequestFields, []string{"size"}) || c.CatalogueLoginOnly {
		t.Errorf("configuration %+v, %v", c, err)
	}
	if same, err := b.service.Entry(t.Context(), "one", e.ID); err != nil || same.Name != e.Name {
		t.Errorf("entry %+v, %v", same, err)
	}
	if _, err := b.service.Entry(t.Context(), "two", e.ID); err != store.ErrNotFound {
		t.Errorf("another organisation's entry: %v", err)
	}
	if _, err := b.service.EntryByPolicy(t.Context(), "one", "draft"); err != store.ErrNotFound {
		t.Errorf("a policy that nothing offers: %v", err)
	}
}

func TestHashKeysSaysHowKeysAreStored(t *testing.T) {
	b := start(t)
	b.Call("PUT", configPath, "editor", `{"HashKeys":true}`).Want(200)
	b.service.StoresKeysInClear(true)
	b.Call("GET", configPath, "viewer", "").Want(200).Says(`"HashKeys":false`)
	b.Call("PUT", configPath, "editor", `{"HashKeys":true}`).Want(400).Says("HashKeys: must be false")
	b.Call("PUT", configPath, "editor", `{"HashKeys":false}`).Want(200)
	b.Call("GET", configPath, "two:viewer", "").Want(200).Says(`"HashKeys":false`)
}

func TestAConfigurationLivesItsLife(t *testing.T) {
	b := start(t)
	b.Call("GET", configPath, "viewer", "").Want(200).Says(`"id":""`, `"require_key_approval":true`, `"disable_signup":false`, `"disable_login":false`, `"oauth_usage_limit":-1`, `"HashKeys":true`, `"enabled":true`)
	if c, err := b.service.Configuration(t.Context(), "one"); err != nil || !c.RequireKeyApproval || c.OAuthUsageLimit != -1 || !c.MailOptions.Copy.Key.Enabled {
		t.Errorf("configuration %+v, %v", c, err)
	}
	r := b.Call("POST", configPath, "editor", `{"signup_fields":["Name"],"later":1.50,"mail_options":{"mail_from_name":"Us","email_copy":{"key_email":{"enabled":true,"subject":"Your key","hide_token_data":true},"welcome_email":{"enabled":false}}}}`).Want(200)
	id := r.Text("Message")
	got := b.Call("GET", configPath, "viewer", "").Want(200).Says(`"later":1.50`, `"require_key_approval":true`, `"subject":"Your key"`, `"hide_token_data":true`, `"org_id":"one"`, `"id":"`+id+`"`)
	if got.ETag != `"1"` {
		t.Errorf("ETag %s", got.ETag)
	}
	c, err := b.service.Configuration(t.Context(), "one")
	if err != nil || !slices.Equal(c.SignupFields, []string{"Name"}) || c.MailOptions.Copy.Welcome.Enabled || c.MailOptions.Copy.Key.Body == "" || !c.MailOptions.Copy.ResetPassword.Enabled {
		t.Errorf("configuration %+v, %v", c, err)
	}
	if again := b.Call("POST", configPath, "editor", `{}`).Want(409).Says(id); again.ETag != `"1"` {
		t.Errorf("a second configuration learns ETag %s", again.ETag)
	}
	b.Call("PUT", configPath, "editor", string(got.Body), "If-Match", `"1"`).Want(200).Says("Data updated")
	if same := b.Call("GET", configPath, "viewer", "").Want(200); string(same.Body) != string(got.Body) {
		t.Errorf("what is sent back comes out otherwise: %s, then %s", got.Body, same.Body)
	}
	if stale := b.Call("PUT", configPath, "editor", string(got.Body), "If-Match", `"1"`).Want(409); stale.ETag != `"2"` {
		t.Errorf("a stale write learns ETag %s", stale.ETag)
	}
	b.Call("PUT", configPath, "editor", `{"id":"other"}`).Want(400).Says("id: must be " + id)
	b.Call("PUT", configPath, "editor", `{"require_key_approval":false,"disable_signup":true,"disable_login":true,"disable_auto_login":true,"oauth_usage_limit":3}`).Want(200)
	b.Call("GET", "/api/portal/public/configuration", "", "").Want(200).
		Says(`"require_key_approval":false`, `"disable_signup":true`, `"disable_login":true`, `"disable_auto_login":true`, `"oauth_usage_limit":3`, `"signup_fields":[]`).Hides("mail_options", "email")
	b.Call("PUT", configPath, "two:editor", `{"id":"x"}`).Want(404)
	b.Call("PUT", configPath, "two:editor", `{}`, "If-Match", `"1"`).Want(404)
	b.Call("PUT", configPath, "two:editor", `{"email":"b@example.com"}`).Want(200)
	b.Call("GET", configPath, "two:viewer", "").Want(200).Says("b@example.com")
	if n := b.Count("select count(*) from audit_log where object_kind = 'portal_configuration'"); n != 4 {
		t.Errorf("%d entries in the audit log", n)
	}
}

func TestWhatIsWrongWithAConfigurationIsNamed(t *testing.T) {
	b := start(t)
	for body, says := range map[string]string{
		`{"signup_fields":["Name","Name"]}`:       `signup_fields[1]: \"Name\" is there already`,
		`{"signup_fields":["Email"]}`:             `signup_fields[0]: must not be \"Email\"`,
		`{"signup_fields":[""]}`:                  "signup_fields[0]: must be the name of a field",
		`{"key_request_fields":[" a"]}`:           "key_request_fields[0]: must be the name of a field",
		`{"key_request_fields":"a"}`:              "key_request_fields: must be an array",
		`{"HashKeys":false}`:                      "HashKeys: must be true",
		`{"redirect_on_key_request":true}`:        "redirect_to: must be set",
		`{"redirect_to":"//evil.example"}`:        "redirect_to: must be a path",
		`{"redirect_to":"/\\evil.example"}`:       "redirect_to: must be a path",
		`{"redirect_to":"/a\tb"}`:                 "redirect_to: must be a path",
		`{"redirect_to":"javascript:alert(1)"}`:   "redirect_to: must be a path",
		`{"redirect_to":"https:evil.example"}`:    "redirect_to: must be a path",
		`{"redirect_to":"ask"}`:                   "redirect_to: must be a path",
		`{"redirect_to":"https://evil.example/"}`: "redirect_to: names the host evil.example, which redirect_hosts does not list",
		`{"redirect_to":"https://a@example.com/","redirect_hosts":["example.com"]}`:            "without user information",
		`{"redirect_to":"https://example.com:1/","redirect_hosts":["example.com"]}`:            "names the host example.com:1",
		`{"redirect_to":"https://example.com.evil.example/","redirect_hosts":["example.com"]}`: "which redirect_hosts does not list",
		`{"redirect_hosts":["https://example.com"]}`:                                           "redirect_hosts[0]: must be a host",
		`{"oauth_usage_limit":-2}`:                                              "oauth_usage_limit: must be -1",
		`{"oauth_usage_limit":1.5}`:                                             "oauth_usage_limit: must be",
		`{"email":"nobody"}`:                                                    "email: must be an address",
		`{"email":"Ann <ann@example.com>"}`:                                     "email: must be an address",
		`{"mail_options":{"mail_from_name":"a\r\nBcc: b"}}`:                     "mail_options.mail_from_name: must be one line",
		`{"mail_options":{"email_copy":{"key_email":{"body":"your {{kee}}"}}}}`: "mail_options.email_copy.key_email.body: {{kee}} is no placeholder",
		`{"mail_options":{"mail_from_email":"x"}}`:                              "mail_options.mail_from_email: must be an address",
		`{"mail_options":{"email_copy":{"key_email":{"subject":"a\nb"}}}}`:      "mail_options.email_copy.key_email.subject: must be one line",
		`{"mail_options":{"email_copy":{"welcome_email":{"body":"` + strings.Repeat("x", 33<<10) + `"}}}}`: "mail_options.email_copy.welcome_email.body: is 33792 bytes",
		`{"mail_options":{"email_copy":{"reset_password_email":{"enabled":1}}}}`:                           "mail_options.email_copy.reset_password_email.enabled: must be true or false",
		`{"event_options":{"key_event":{"webhook":"ftp://x"}}}`:                                            "event_options.key_event.webhook: must be an http",
		`{"event_options":{"api_event":{"email":"x"}}}`:                                                    "event_options.api_event.email: must be an address",
		`{"disable_login":"no"}`: "disable_login: must be true or false", `{"id":"a b"}`: "id: must be 1 to 128", `[]`: "", ``: "", `{`: "",
	} {
		for _, method := range []string{"POST", "PUT"} {
			b.Call(method, configPath, "editor", body).Want(400).Says(says)
		}
	}
	for _, body := range []string{
		`{"redirect_on_key_request":true,"redirect_to":"/ask?x=1#y"}`, `{"redirect_to":"HTTPS://Example.com:8443/a","redirect_hosts":["example.com:8443"]}`,
		`{"event_options":{"key_event":{"webhook":"https://example.com/x","email":"ops@example.com"}}}`, `{"oauth_usage_limit":0}`,
	} {
		b.Call("PUT", configPath, "editor", body).Want(200)
	}
}

func TestLimitsInWords(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                     "any number of requests",
		`{"rate":1,"per":1}`:     "1 request a second",
		`{"rate":10,"per":60}`:   "10 requests a minute",
		`{"rate":10,"per":30}`:   "10 requests every 30 seconds",
		`{"rate":10,"per":120}`:  "10 requests every 2 minutes",
		`{"rate":0.5,"per":1.5}`: "0.5 requests every 1.5 seconds",
		`{"rate":-1,"per":1}`:    "any number of requests",
		`{"quota_max":1234567,"quota_renewal_rate":86400}`: "1,234,567 requests a day",
		`{"quota_max":10,"quota_renewal_rate":2592000}`:    "10 requests in 30 days",
		`{"quota_max":10,"quota_renewal_rate":604800}`:     "10 requests a week",
		`{"quota_max":10,"quota_renewal_rate":172800}`:     "10 requests every 2 days",
		`{"quota_max":10}`: "10 requests in all",
		`{"quota_max":10,"quota_renewal_calendar":"month"}`:                                                              "10 requests each calendar month",
		`{"quota_max":-1,"max_query_depth":-1}`:                                                                          "any number of requests",
		`{"rate":5,"per":1,"quota_max":9,"partitions":{"quota":true}}`:                                                   "9 requests in all",
		`{"rate":5,"per":1,"quota_max":9,"partitions":{"rate_limit":true}}`:                                              "5 requests a second",
		`{"rate":5,"per":1,"access_rights":{"a":{"limit":{"quota_max":7}}}}`:                                             "5 requests a second, 7 requests in all",
		`{"rate":5,"per":1,"access_rights":{"b":{"limit":{"rate":7,"per":1}}}}`:                                          "5 requests a second",
		`{"rate":5,"per":1,"max_query_depth":2,"access_rights":{"a":{"limit":{"rate":-1,"per":1,"max_query_depth":4}}}}`: "any number of requests, GraphQL operations up to 4 levels deep",
	} {
		if _, err := definition.ParsePolicy([]byte(body)); err != nil && !strings.Contains(err.Error(), "id") {
			t.Logf("%s: %v", body, err)
		}
		l, err := limitsOf(&store.OfferedPolicy{Body: []byte(body)}, "a")
		if err != nil || strings.Join(l.Words, ", ") != want {
			t.Errorf("%s: %v, %v, want %q", body, l, err, want)
		}
	}
}

func TestOverrideLeavesTheOrganisationsConfigurationAlone(t *testing.T) {
	c := Defaults("one")
	if got := Override(c, nil); got != c {
		t.Error("without an entry there is nothing to override")
	}
	e := &model.Entry{Config: &model.Configuration{Override: true, OAuthUsageLimit: 2}}
	if got := Override(c, e); got.OAuthUsageLimit != 2 || c.OAuthUsageLimit != -1 || got.OrgID != "one" {
		t.Errorf("%+v, %+v", got, c)
	}
}
