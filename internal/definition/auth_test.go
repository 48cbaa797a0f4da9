package definition

import (
	"slices"
	"strings"
	"testing"
)

func TestWhereCredentialsStandIsChecked(t *testing.T) {
	const begin = `{"proxy": {"listen_path": "/a", "target_url": "http://b"}, `
	for rest, want := range map[string][]string{
		`"use_standard_auth": true`: nil,
		`"auth_configs": {"authToken": {"use_param": true, "param_name": "api_key", "use_cookie": true, "cookie_name": "session"}}`: nil,
		`"auth_configs": {"authToken": {"disable_header": true, "use_param": true}}`:                                                nil,
		`"use_basic_auth": true, "auth_configs": {"authToken": {"disable_header": true}}`:                                           nil,
		`"use_keyless": true, "use_standard_auth": true`:                                                                            nil,
		`"use_basic_auth": true, "use_standard_auth": true, "base_identity_provided_by": "basic_auth_user"`:                         nil,
		`"base_identity_provided_by": "auth_token"`:                                                                                 nil,
		`"auth_configs": {"authToken": {"disable_header": true}}`:                                                                   {`auth_configs["authToken"].disable_header`},
		`"auth": {"disable_header": true}`:                                                                                          {`auth.disable_header`},
		`"auth": {"param_name": "a b", "cookie_name": "a=b", "auth_header_name": "a:"}`:                                             {`auth.auth_header_name`, `auth.param_name`, `auth.cookie_name`},
		`"auth_configs": {"authToken": {"param_name": "a=b"}}`:                                                                      {`auth_configs["authToken"].param_name`},
		`"use_keyless": true, "use_basic_auth": true`:                                                                               {`use_keyless`},
		`"use_basic_auth": true, "base_identity_provided_by": "auth_token"`:                                                         {`base_identity_provided_by`},
		`"base_identity_provided_by": "basic_auth_user"`:                                                                            {`base_identity_provided_by`},
		`"base_identity_provided_by": "somebody"`:                                                                                   {`base_identity_provided_by`},
	} {
		_, err := ParseAPI([]byte(begin + rest + "}"))
		var got []string
		if problems, ok := err.(*Problems); ok {
			for _, p := range *problems {
				got = append(got, p.Path)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n got %q: %v\nwant %q", rest, got, err, want)
		}
	}
}

func TestTokensAreAskedForUnlessSomethingElseIs(t *testing.T) {
	for _, c := range []struct {
		api  API
		want bool
	}{
		{API{}, true},
		{API{UseStandardAuth: true}, true},
		{API{UseBasicAuth: true}, false},
		{API{EnableJWT: true}, false},
		{API{UseBasicAuth: true, UseStandardAuth: true}, true},
		{API{UseMutualTLS: true}, true},
	} {
		if got := c.api.UsesToken(); got != c.want {
			t.Errorf("%+v: %v", c.api, got)
		}
	}
}

func TestUseConnectionInitStandsForTheHeader(t *testing.T) {
	const rest = `"name":"a","api_id":"a","proxy":{"listen_path":"/a/","target_url":"http://a.example"}`
	a, err := ParseAPI([]byte(`{` + rest + `,"use_basic_auth":true,"use_standard_auth":true,
		"auth_configs":{"basic":{"use_connection_init":true},"jwt":{"use_connection_init":true},"authToken":{"auth_header_name":"X-Key","use_connection_init":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(a.InitHeaders(), " "); got != "Authorization X-Key" {
		t.Errorf("headers in connection_init: %s", got)
	}
	a.UseKeyless, a.UseBasicAuth = true, false
	if got := a.InitHeaders(); got != nil {
		t.Errorf("of a keyless API: %s", got)
	}
	_, err = ParseAPI([]byte(`{` + rest + `,"auth_configs":{"authToken":{"disable_header":true,"use_param":true,"use_connection_init":true}}}`))
	if err == nil || !strings.Contains(err.Error(), `auth_configs["authToken"].use_connection_init: must be false where disable_header is true`) {
		t.Errorf("without a header: %v", err)
	}
}

func TestAtLimitIsChecked(t *testing.T) {
	const api = `{"name":"a","api_id":"a","proxy":{"listen_path":"/a/","target_url":"http://a.example"},"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { a: Int }","proxy":{"subscriptions":{"count_events":true,"at_limit":"AT"}}}}`
	for at, ok := range map[string]bool{"": true, "drop": true, "delay": true, "end": true, "wait": false} {
		_, err := ParseAPI([]byte(strings.Replace(api, "AT", at, 1)))
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), `graphql.proxy.subscriptions.at_limit: must be "drop", "delay" or "end"`) {
			t.Errorf("%q: %v", at, err)
		}
	}
}
