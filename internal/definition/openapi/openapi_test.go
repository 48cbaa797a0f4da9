package openapi

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// document returns one with other members of x-svc-api-gateway.
func document(gateway string) string {
	return `{"openapi":"3.0.3","info":{"title":"Orders","version":"1"},"paths":{"/orders":{"post":{"x-mine":1.50,"responses":{}}}},
		"components":{"securitySchemes":{"a key":{"type":"apiKey","in":"header","name":"X-Key"},"query":{"type":"apiKey","in":"query","name":"k"},
			"token":{"type":"http","scheme":"bearer"},"user":{"type":"http","scheme":"basic"},"oidc":{"type":"openIdConnect"}}},
		"x-svc-api-gateway":` + gateway + `,"x-svc-streaming":{"streams":{"orders":{"input":{"http_server":{"path":"/orders"}},"output":{"msgbroker":{"topic":"orders"}}}}}}`
}

func convert(t *testing.T, text string, stored []byte) (definition map[string]any, problems []string) {
	t.Helper()
	d, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	made, wrong, err := d.Definition(stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(made, &definition); err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	return definition, wrong.Texts()
}

func TestWhoMayCallIsNeverLostByOmission(t *testing.T) {
	for auth, want := range map[string]string{
		``:                                    `{"use_standard_auth":true}`,
		`"authentication":null,`:              `{"use_standard_auth":true}`,
		`"authentication":{},`:                `{"use_standard_auth":true}`,
		`"authentication":{"enabled":true},`:  `{"use_standard_auth":true}`,
		`"authentication":{"enabled":false},`: `{"use_keyless":true}`,
		`"authentication":{"enabled":true,"securitySchemes":{"token":{"enabled":false}}},`:                       `{"use_standard_auth":true}`,
		`"authentication":{"stripAuthorizationData":true,"securitySchemes":{"a key":{"enabled":true}}},`:         `{"auth_configs":{"authToken":{"auth_header_name":"X-Key","name":"a key"}},"strip_auth_data":true,"use_standard_auth":true}`,
		`"authentication":{"securitySchemes":{"a key":{"header":{"enabled":true,"name":"X-Other"}}}},`:           `{"auth_configs":{"authToken":{"auth_header_name":"X-Other","name":"a key"}},"use_standard_auth":true}`,
		`"authentication":{"securitySchemes":{"query":{}}},`:                                                     `{"auth_configs":{"authToken":{"disable_header":true,"name":"query","param_name":"k","use_param":true}},"use_standard_auth":true}`,
		`"authentication":{"securitySchemes":{"query":{"header":{"enabled":true},"query":{"enabled":false}}}},`:  `{"auth_configs":{"authToken":{"name":"query","param_name":"k","use_param":false}},"use_standard_auth":true}`,
		`"authentication":{"securitySchemes":{"token":{"source":"c2VjcmV0","signingMethod":"hmac"},"user":{}}},`: `{"auth_configs":{"basic":{"name":"user"},"jwt":{"name":"token"}},"enable_jwt":true,"jwt_signing_method":"hmac","jwt_source":"c2VjcmV0","use_basic_auth":true}`,
	} {
		got, problems := convert(t, document(`{"server":{`+auth+`"listenPath":{"value":"/o/"}}}`), nil)
		for _, other := range []string{"active", "name", "proxy", streaming, kept} {
			delete(got, other)
		}
		text, _ := json.Marshal(got)
		if len(problems) > 0 || string(text) != want {
			t.Errorf("%s: %s, %q; want %s", auth, text, problems, want)
		}
	}
}

func TestWhatCannotBeHonouredIsRefusedByName(t *testing.T) {
	const listen = `"listenPath":{"value":"/o/"}`
	for gateway, want := range map[string]string{
		`null`: "x-svc-api-gateway: must be an object",
		`[]`:   "x-svc-api-gateway: must be an object",
		`{"server":{"authentication":true,` + listen + `}}`:                                                         "x-svc-api-gateway.server.authentication: must be an object",
		`{"server":{"authentication":{"enabled":"no"},` + listen + `}}`:                                             "x-svc-api-gateway.server.authentication.enabled: must be true or false",
		`{"server":{"authentication":{"securitySchemes":{"none":{}}},` + listen + `}}`:                              "x-svc-api-gateway.server.authentication.securitySchemes.none: has no scheme of that name",
		`{"server":{"authentication":{"securitySchemes":{"oidc":{}}},` + listen + `}}`:                              "x-svc-api-gateway.server.authentication.securitySchemes.oidc: names a scheme of a kind that is not supported",
		`{"server":{"authentication":{"securitySchemes":{"a key":{},"query":{}}},` + listen + `}}`:                  "x-svc-api-gateway.server.authentication.securitySchemes.query: is of the same kind as",
		`{"server":{"authentication":{"securitySchemes":{"a key":{"signature":{"enabled":true}}}},` + listen + `}}`: `x-svc-api-gateway.server.authentication.securitySchemes["a key"].signature: is not supported`,
		`{"server":{"authentication":{"hmac":{"enabled":true}},` + listen + `}}`:                                    "x-svc-api-gateway.server.authentication.hmac: is not supported",
		`{"server":{"listenPath":{"vlaue":"/o/"}}}`:                                                                 `x-svc-api-gateway.server.listenPath.vlaue: is unknown; did you mean "value"?`,
		`{"server":{"listenPath":"/o/"}}`:                                                                           "x-svc-api-gateway.server.listenPath: must be an object",
		`{"middleware":{"operations":{"getOrders":{"allow":{"enabled":true}}}}}`:                                    "x-svc-api-gateway.middleware.operations: is for paths of an upstream",
		`{"middleware":{"global":{"pluginConfig":{"driver":"x"}}}}`:                                                 "x-svc-api-gateway.middleware.global.pluginConfig: is not supported",
		`{"info":{"versioning":{"enabled":true}}}`:                                                                  "x-svc-api-gateway.info.versioning: is not supported",
	} {
		_, problems := convert(t, document(gateway), nil)
		if len(problems) != 1 || !strings.HasPrefix(problems[0], want) {
			t.Errorf("%s: %q, want %s", gateway, problems, want)
		}
	}
}

func TestProblemsOfTheDocumentComeAtOnce(t *testing.T) {
	_, problems := convert(t, `{"openapi":"2.0","info":{"title":1},"paths":[],"x-svc-streaming":{"streams":{}}}`, nil)
	want := []string{
		`info.title: is required, as a text`, `info.version: is required, as a text`, `openapi: must be "3.0.x" or "3.1.x", such as "3.0.3"`, `paths: must be an object`,
		`x-svc-api-gateway: is required: what the API is called and where it is served, such as {"info": {"name": "orders"}, "server": {"listenPath": {"value": "/orders/"}}}`,
		`x-svc-streaming.streams: is required: at least one stream by its name`,
	}
	if !reflect.DeepEqual(problems, want) {
		t.Errorf("%q", problems)
	}
}

func TestTextThatIsNoDocumentIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                          "is neither JSON nor YAML: it is empty",
		`[1]`:                       "must be an object, in JSON or YAML",
		`{"a":1,"b":{"c":1,"c":2}}`: "b.c: stands twice; leave one of them out",
		"a: 1\nb:\n  c: 1\n  c: 2":  "b.c: stands twice; leave one of them out",
		`{"a":1}{}`:                 "line 1, column 8 is not JSON",
		"a: 1\n---\nb: 2":           "holds more than one YAML document",
		"a: .inf":                   "a: line 1: .inf cannot be written in JSON",
		"a: &x {b: 1}\n<<: *x":      "line 2: a name must be text",
		"a: &a [*a]":                "nests deeper than the 63 levels",
		"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n": "has more than 100000 values",
		strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64):                   "nests deeper than the 63 levels",
		strings.Repeat("a: [", 1) + strings.Repeat("[", 70) + strings.Repeat("]", 71): "nests deeper than the 63 levels",
		`{"a":"` + strings.Repeat("x", MaxSize) + `"}`:                                "is 1048584 bytes; at most 1048576 are read",
	} {
		_, err := Read([]byte(text))
		wrong, ok := errors.AsType[*definition.Problems](err)
		if !ok || !strings.Contains(wrong.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	if _, err := Read([]byte(strings.Repeat(`{"a":`, 63) + "1" + strings.Repeat("}", 63))); err != nil {
		t.Error(err)
	}
}

func TestYAMLSaysTheSameAsJSON(t *testing.T) {
	got, err := toJSON([]byte("# comment\nopenapi: 3.0.3\nn: [1, 1.50, -2, 0x10, 1_000, true, ~, yes, '1', 2020-01-01]\ntext: |\n  root = this\n  # no comment\n"))
	const want = `{"openapi":"3.0.3","n":[1,1.50,-2,16,1000,true,null,"yes","1","2020-01-01"],"text":"root = this\n# no comment\n"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

const whole = `{"info":{"id":"orders","dbId":"5f","orgId":"o","name":"orders","state":{"active":false,"internal":true},"x-mine":{"a":1}},
	"server":{"listenPath":{"value":"/o/","strip":false},"customDomain":{"enabled":true,"name":"api.example"},"gatewayTags":{"enabled":false,"tags":["eu"]},
		"authentication":{"enabled":true,"stripAuthorizationData":true,"securitySchemes":{"a key":{"enabled":true,"header":{"enabled":true,"name":"X-Key"}},
			"token":{"enabled":true,"header":{"enabled":true},"signingMethod":"hmac","source":"c2VjcmV0","skipKid":true}}}},
	"upstream":{"url":""},
	"middleware":{"global":{"cors":{"enabled":true,"allowedOrigins":["https://a.example"],"maxAge":60},"requestSizeLimit":{"enabled":true,"value":1024},
		"skipQuota":true,"trafficLogs":{"enabled":false}}}}`

func TestNothingOfADocumentIsLost(t *testing.T) {
	d, err := Read([]byte(document(whole)))
	if err != nil {
		t.Fatal(err)
	}
	made, problems, err := d.Definition(nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	shown, err := Render(made)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if json.Unmarshal(shown, &got) != nil || json.Unmarshal([]byte(document(whole)), &want) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwant\n%s", shown, document(whole))
	}
	if !strings.Contains(string(shown), "1.50") {
		t.Error("a number was written in another way")
	}
	if strings.Count(string(made), "c2VjcmV0") != 1 || strings.Count(string(made), `"/o/"`) != 1 {
		t.Errorf("something is stored twice: %s", made)
	}
}

func TestAChangeOfTheDefinitionIsSeenInTheDocument(t *testing.T) {
	d, err := Read([]byte(document(whole)))
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := d.Definition(nil)
	if err != nil {
		t.Fatal(err)
	}
	stored, _ := parseTree(made)
	set(stored, "proxy.listen_path", "/other/")
	set(stored, "name", "renamed")
	set(stored, "enable_jwt", false)
	set(stored, "use_basic_auth", true)
	set(stored, "use_standard_auth", true)
	set(stored, "event_handlers", tree{"events": tree{}})
	delete(stored, "CORS")
	changed, err := write(stored)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := Render(changed)
	if err != nil {
		t.Fatal(err)
	}
	now, _ := parseTree(shown)
	gateway := now[extension].(tree)
	all := get(gateway, schemes).(tree)
	if get(gateway, "server.listenPath.value") != "/other/" || get(gateway, "info.name") != "renamed" || get(gateway, "middleware.global.cors") != nil || all["token"] != nil || all["user"] == nil || all["a key"] == nil {
		t.Errorf("%s", shown)
	}

	// The document replaces what documents say, and nothing else.
	again, problems := convert(t, document(`{"server":{"listenPath":{"value":"/third/"}}}`), changed)
	if len(problems) > 0 || again["event_handlers"] == nil || get(again, "proxy.listen_path") != "/third/" || again["use_basic_auth"] != nil || again["name"] != "Orders" || again["use_standard_auth"] != true || again["active"] != true {
		t.Errorf("%v %q", again, problems)
	}
}

func TestADefinitionWithoutADocumentHasOne(t *testing.T) {
	for stored, want := range map[string]string{
		`{"api_id":"a","name":"n","use_keyless":true,"proxy":{"listen_path":"/a/"},"x-svc-streaming":{"streams":{}}}`: `{"openapi":"3.0.3","info":{"title":"n","version":"1"},"paths":{},"x-svc-api-gateway":{"info":{"id":"a","name":"n","state":{"active":true}},"server":{"authentication":{"enabled":false},"listenPath":{"strip":false,"value":"/a/"}}},"x-svc-streaming":{"streams":{}}}`,
		`{"api_id":"a","proxy":{"listen_path":"/a/"},"auth":{"auth_header_name":"K"}}`:                                `{"openapi":"3.0.3","info":{"title":"a","version":"1"},"paths":{},"components":{"securitySchemes":{"authToken":{"type":"apiKey","in":"header","name":"Authorization"}}},"x-svc-api-gateway":{"info":{"id":"a","state":{"active":true}},"server":{"authentication":{"enabled":true,"securitySchemes":{"authToken":{"enabled":true,"header":{"enabled":true,"name":"K"}}}},"listenPath":{"strip":false,"value":"/a/"}}}}`,
	} {
		got, err := Render([]byte(stored))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", stored, err, got, want)
		}
	}
}

func TestPlacesOfTheDefinitionAreThoseOfTheDocument(t *testing.T) {
	d, err := Read([]byte(document(`{"server":{"authentication":{"securitySchemes":{"a key":{},"token":{}}},"listenPath":{"value":"x"}}}`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Definition(nil); err != nil {
		t.Fatal(err)
	}
	const auth = extension + "." + authentication
	for path, want := range map[string]string{
		"proxy.listen_path":       extension + ".server.listenPath.value",
		"name":                    "info.title",
		"CORS.allowed_origins[2]": extension + ".middleware.global.cors.allowedOrigins[2]",
		`auth_configs["authToken"].disable_header`:           auth + `.securitySchemes["a key"].header.enabled`,
		`auth_configs["authToken"].param_name`:               auth + `.securitySchemes["a key"].query.name`,
		"jwt_source":                                         auth + ".securitySchemes.token.source",
		"use_keyless":                                        auth,
		"x-svc-streaming.streams.a.input":                    "x-svc-streaming.streams.a.input",
		`version_data.versions["Default"].global_size_limit`: extension + ".middleware.global.requestSizeLimit.value",
	} {
		if got := d.Place(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(document(whole))
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Read([]byte(text))
		if err != nil {
			if _, ok := errors.AsType[*definition.Problems](err); !ok {
				t.Fatal(err)
			}
			return
		}
		made, _, err := d.Definition(nil)
		if err != nil || !json.Valid(made) {
			t.Fatalf("%v: %s", err, made)
		}
		if shown, err := Render(made); err != nil || !json.Valid(shown) {
			t.Fatalf("%v: %s", err, shown)
		}
	})
}
