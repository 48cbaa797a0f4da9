package redact

import (
	"reflect"
	"strings"
	"testing"
)

func TestSecretsAreTakenOutWhereverTheyStand(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":[{"Password":"x","n":12345678901234567890}]}`: `{"a":[{"Password":"***","n":12345678901234567890}]}`,
		`{"header_map":{"Authorization":"x"},"token":""}`:   `{"header_map":{"Authorization":"***"},"token":""}`,
		`{"password":true,"secret":{},"cookie":["a=b"]}`:    `{"password":true,"secret":{},"cookie":"***"}`,
		`{"broken`: `"***"`,
		`<b>`:      `"***"`,
		`"<b>"`:    `"<b>"`,
		`{"z":null,"a":[true,1.50,{}],"key_secret":"x"}`: `{"z":null,"a":[true,1.50,{}],"key_secret":"***"}`,
	} {
		if got := string(JSON([]byte(body))); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if JSON(nil) != nil {
		t.Error("nothing became something")
	}
}

// TestSecretsOfDefinitionsAreTakenOutWhereTheyStand has one case for each place of the
// table, and what stands beside it and is open.
func TestSecretsOfDefinitionsAreTakenOutWhereTheyStand(t *testing.T) {
	for body, want := range map[string]string{
		`{"jwt_source":"c2VjcmV0"}`:                                                                       `{"jwt_source":"***"}`,
		`{"jwt_source":"-----BEGIN PUBLIC KEY-----\nx"}`:                                                  `{"jwt_source":"-----BEGIN PUBLIC KEY-----\nx"}`,
		`{"jwt_source":"https://id.example/keys"}`:                                                        `{"jwt_source":"https://id.example/keys"}`,
		`{"jwt_source":"https://id.example/keys?key=x"}`:                                                  `{"jwt_source":"***"}`,
		`{"jwt_jwks_uris":[{"url":"https://id.example/keys?key=x"}]}`:                                     `{"jwt_jwks_uris":[{"url":"https://id.example/keys?***"}]}`,
		`{"global_headers":{"X-Any":"x"},"global_response_headers":{"X-Any":"x"}}`:                        `{"global_headers":{"X-Any":"***"},"global_response_headers":{"X-Any":"x"}}`,
		`{"transform_headers":[{"path":"/a","add_headers":{"X-Any":"x"}}]}`:                               `{"transform_headers":[{"path":"/a","add_headers":{"X-Any":"***"}}]}`,
		`{"transform_response_headers":[{"add_headers":{"X-Any":"x"}}]}`:                                  `{"transform_response_headers":[{"add_headers":{"X-Any":"x"}}]}`,
		`{"mock_response":[{"headers":{"X-Any":"x"}}]}`:                                                   `{"mock_response":[{"headers":{"X-Any":"x"}}]}`,
		`{"health_check":{"path":"/h","headers":{"X-Any":"x"}}}`:                                          `{"health_check":{"path":"/h","headers":{"X-Any":"***"}}}`,
		`{"check_list":["http://u:x@a/",{"url":"http://a?x","body":"eA==","headers":{"X-Any":"x"}}]}`:     `{"check_list":["http://***@a/",{"body":"***","headers":{"X-Any":"***"},"url":"http://a?***"}]}`,
		`{"handler_meta":{"target_path":"https://u:x@hooks.example/services/x","method":"POST"}}`:         `{"handler_meta":{"target_path":"https://***@hooks.example/***","method":"POST"}}`,
		`{"proxy":{"target_url":"http://u:x@a/b","target_list":["http://u:x@a",{"url":"http://u:x@b"}]}}`: `{"proxy":{"target_url":"http://***@a/b","target_list":["http://***@a",{"url":"http://***@b"}]}}`,
		`{"override_target":"http://u:x@a","rewrite_to":"http://a/?key=x"}`:                               `{"override_target":"http://***@a","rewrite_to":"http://a/?***"}`,
		`{"meta_data":{"upstream_token":"x","owner":"ann"}}`:                                              `{"meta_data":{"owner":"ann","upstream_token":"***"}}`,
		`{"facts":[{"rule":"header X-Any","value":"x"},{"rule":"rate","value":"5"}]}`:                     `{"facts":[{"rule":"header X-Any","value":"***"},{"rule":"rate","value":"5"}]}`,
		`{"event_options":{"key_event":{"webhook":"https://hooks.example/x","email":"a@b"}}}`:             `{"event_options":{"key_event":{"webhook":"https://hooks.example/***","email":"a@b"}}}`,
		`{"upstream":{"added":["X-Any: x"],"removed":["Host"]}}`:                                          `{"upstream":{"added":["X-Any: ***"],"removed":["Host"]}}`,
	} {
		if got := string(JSON([]byte(body))); got != want {
			t.Errorf("%s:\n %s, want\n %s", body, got, want)
		}
		if twice := string(JSON(JSON([]byte(body)))); twice != string(JSON([]byte(body))) {
			t.Errorf("%s: masked again it is %s", body, twice)
		}
	}
}

func TestAPartOfASecretIsMaskedAtItsPath(t *testing.T) {
	for path, want := range map[string]string{
		"jwt_source": Masked, "version_data.versions.v1.global_headers.X-Any": Masked, "event_handlers.events.E.[].handler_meta.header_map.A": Masked,
		"meta_data.upstream_token": Masked, "meta_data.owner": "x", "name": "x",
	} {
		if got := At(strings.Split(path, "."), "x"); got != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
}

func TestAMaskThatIsSavedStandsForTheStoredSecret(t *testing.T) {
	const stored = `{"name":"a","jwt_source":"c2VjcmV0","global_headers":{"X-A":"one","X-B":"two"},"proxy":{"target_url":"http://u:x@a/b"},` +
		`"list":[{"n":1,"secret":"first"},{"n":2,"secret":"second"}]}`
	for _, c := range []struct{ sent, want, problems string }{
		{string(JSON([]byte(stored))), stored, ""},
		{`{"name":"b","jwt_source":"***"}`, `{"name":"b","jwt_source":"c2VjcmV0"}`, ""},
		{`{"jwt_source":"bmV3"}`, `{"jwt_source":"bmV3"}`, ""},
		{`{"name":"***"}`, `{"name":"***"}`, ""},
		{`{"global_headers":{"X-B":"***","X-A":"new"}}`, `{"global_headers":{"X-A":"new","X-B":"two"}}`, ""},
		{`{"list":[{"n":2,"secret":"***"},{"n":1,"secret":"***"}]}`, `{"list":[{"n":2,"secret":"second"},{"n":1,"secret":"first"}]}`, ""},
		{`{"list":[{"n":3,"secret":"***"},{"n":2,"secret":"***"}]}`, `{"list":[{"n":3,"secret":"first"},{"n":2,"secret":"second"}]}`, ""},
		{`{"list":[{"n":2,"secret":"***"}]}`, `{"list":[{"n":2,"secret":"second"}]}`, ""},
		{`{"list":[{"n":3,"secret":"***"}]}`, "", "list[0].secret"},
		{`{"list":[{"n":1,"secret":"***"},{"n":2,"secret":"***"},{"n":3,"secret":"***"}]}`, "", "list[2].secret"},
		{`{"proxy":{"target_url":"http://***@other/b"}}`, "", "proxy.target_url"},
		{`{"global_headers":{"X-C":"***"},"password":"***"}`, "", "global_headers.X-C password"},
	} {
		got, paths := Restore([]byte(c.sent), []byte(stored))
		if strings.Join(paths, " ") != c.problems || c.problems == "" && !sameJSON(got, c.want) {
			t.Errorf("%s: %s, %q; want %s, %s", c.sent, got, paths, c.want, c.problems)
		}
	}
	if _, paths := Restore([]byte(`{"jwt_source":"***"}`), nil); len(paths) != 1 {
		t.Errorf("a mask in a new object: %q", paths)
	}
}

func sameJSON(a []byte, b string) bool {
	x, errX := decode(a)
	y, errY := decode([]byte(b))
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func TestWhatIsForOthersHoldsNothingThatMayBeSecret(t *testing.T) {
	for body, want := range map[string]string{
		`{"target_url":"http://me:planted@host:1/a?key=planted","n":1}`:                    `{"n":1,"target_url":"http://***@host:1/a?***"}`,
		`{"global_headers":{"X-Any":"planted"},"global_headers_remove":["X-A"],"e":true}`:  `{"e":true,"global_headers":{"X-Any":"***"},"global_headers_remove":["***"]}`,
		`{"meta_data":{"a":["planted",1]},"webhook_token":"planted","upstream_secret":""}`: `{"meta_data":{"a":["***",1]},"upstream_secret":"","webhook_token":"***"}`,
		`{"list":["redis://:planted@h","text ://x"],"password":"planted"}`:                 `{"list":["redis://***@h","text ://x"],"password":"***"}`,
		`planted`: `"***"`,
	} {
		if got := string(ForOthers([]byte(body))); got != want {
			t.Errorf("%s:\n %s, want\n %s", body, got, want)
		}
	}
}
