package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// referring has a reference in every place where they count, and some where they do not.
const referring = `{"name":"{secret:name}","org_id":"one","api_id":"a","enable_jwt":true,
	"jwt_source":"{file:/run/secrets/jwt}","jwt_signing_method":"hmac","jwt_default_policies":["p"],
	"proxy":{"listen_path":"/a/","target_url":"http://a","health_check":{"path":"/h","headers":{"X-A":"{secret:health}"}}},
	"graphql":{"proxy":{"auth_headers":{"X-A":"{secret:auth}"},"request_headers":{"X-A":"{secret:request}"}}},
	"uptime_tests":{"check_list":[{"url":"http://a/h","headers":{"X-A":"{secret:uptime}"}}]},
	"event_handlers":{"events":{"QuotaExceeded":[{"handler_name":"eh_web_hook_handler","handler_meta":
		{"method":"POST","target_path":"https://a/{secret:path}","header_map":{"X-A":"{secret:hook}"}}}]}},
	"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","use_extended_paths":true,
		"global_headers":{"Authorization":"Basic {env:SLUICE_SECRET_USER}:{secret:global}","X-Home":"{env:HOME}"},
		"global_response_headers":{"X-A":"{secret:response}"},
		"extended_paths":{"transform_headers":[{"path":"/","method":"GET","add_headers":{"X-A":"{secret:path.rule}"}}]}}}}}`

func parsed(t *testing.T, text string) *API {
	t.Helper()
	api, err := ParseAPI([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func TestReferencesToSecretsCountWhereCredentialsAre(t *testing.T) {
	api := parsed(t, referring)
	var got []string
	for _, use := range api.SecretUses() {
		got = append(got, use.Path+" "+use.Ref.String())
	}
	want := []string{
		`event_handlers.events["QuotaExceeded"][0].handler_meta.header_map["X-A"] {secret:hook}`,
		`event_handlers.events["QuotaExceeded"][0].handler_meta.target_path {secret:path}`,
		`graphql.proxy.auth_headers["X-A"] {secret:auth}`,
		`graphql.proxy.request_headers["X-A"] {secret:request}`,
		`jwt_source {file:/run/secrets/jwt}`,
		`proxy.health_check.headers["X-A"] {secret:health}`,
		`uptime_tests.check_list[0].headers["X-A"] {secret:uptime}`,
		`version_data.versions["Default"].extended_paths.transform_headers[0].add_headers["X-A"] {secret:path.rule}`,
		`version_data.versions["Default"].global_headers["Authorization"] {env:SLUICE_SECRET_USER}`,
		`version_data.versions["Default"].global_headers["Authorization"] {secret:global}`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("references:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if names := strings.Join(api.SealedSecrets(), " "); names != "auth global health hook path path.rule request uptime" {
		t.Errorf("sealed secrets %q", names)
	}
	warnings := strings.Join(api.UnknownMembers().Texts(), "\n")
	for _, want := range []string{
		"name: refers to a secret, which is literal text here", "version_data.versions.Default.global_response_headers.X-A: refers to a secret",
		`version_data.versions["Default"].global_headers["X-Home"]: has {env:HOME}, which is literal text`,
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("warnings lack %q:\n%s", want, warnings)
		}
	}
	if strings.Count(warnings, "\n") != 2 {
		t.Errorf("warnings:\n%s", warnings)
	}
}

func TestSecretsTakeThePlaceOfReferences(t *testing.T) {
	api := parsed(t, referring)
	before := api.ContentHash()
	with, err := api.WithSecrets(func(ref SecretRef) (string, error) {
		if ref.Kind == FileSecret {
			return strings.Repeat("A", 64), nil
		}
		return "<" + ref.Name + ">{secret:other}", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	in := with.InForce()
	for _, got := range [][2]string{
		{in.JWT.Source, strings.Repeat("A", 64)},
		{in.VersionData.Versions["Default"].GlobalHeaders["Authorization"], "Basic <SLUICE_SECRET_USER>{secret:other}:<global>{secret:other}"},
		{in.VersionData.Versions["Default"].GlobalHeaders["X-Home"], "{env:HOME}"},
		{in.VersionData.Versions["Default"].GlobalResponseHeaders["X-A"], "{secret:response}"},
		{in.EventHandlers.Events["QuotaExceeded"][0].Meta.Target, "https://a/<path>{secret:other}"},
		{in.Name, "{secret:name}"},
	} {
		if got[0] != got[1] {
			t.Errorf("%q, want %q", got[0], got[1])
		}
	}
	if with.ContentHash() != before || api.ContentHash() != before || in.ContentHash() == before {
		t.Error("the definition itself changed, or the one in force did not")
	}
	if len(with.Secrets()) != 10 || api.Secrets() != nil || with.Clone().InForce().ContentHash() != before {
		t.Errorf("%d secrets", len(with.Secrets()))
	}
	for _, shown := range []any{with, *with} {
		text, err := json.Marshal(shown)
		if err != nil || strings.Contains(string(text), "<global>") {
			t.Errorf("shown: %s, %v", text, err)
		}
	}
}

func TestASecretThatCannotBeUsedIsNamedAndNotQuoted(t *testing.T) {
	const planted = "planted-secret"
	for text, want := range map[string]struct{ secret, problem string }{
		`"use_keyless":true,"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","global_headers":{"X-A":"{secret:a}"}}}}`: {
			planted + "\nX-B: c", `global_headers["X-A"]`,
		},
		`"enable_jwt":true,"jwt_source":"{secret:a}","jwt_signing_method":"hmac","jwt_default_policies":["p"]`: {
			planted + "!", "jwt_source: must be base64",
		},
		`"enable_jwt":true,"jwt_source":"{secret:a}","jwt_signing_method":"rsa","jwt_default_policies":["p"],"x":1`: {
			planted + "==", "jwt_source: ",
		},
		`"use_keyless":true,"proxy2":1,"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","global_headers":{"X-A":"a {secret:a}"}}}}`: {
			"$svc_meta." + planted, "{secret:a}: has $svc_",
		},
		`"use_keyless":true,"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","global_headers":{"X-A":"b {secret:a}"}}}}`: {
			"abc", "{secret:a}: is shorter than 4 bytes",
		},
	} {
		api := parsed(t, `{"api_id":"a","name":"a","proxy":{"listen_path":"/a/","target_url":"http://a"},`+text+`}`)
		_, err := api.WithSecrets(func(SecretRef) (string, error) { return want.secret, nil })
		if err == nil || !strings.Contains(err.Error(), want.problem) || strings.Contains(err.Error(), planted) {
			t.Errorf("%s: %v, want %q", text, err, want.problem)
		}
	}
	api := parsed(t, referring)
	_, err := api.WithSecrets(func(SecretRef) (string, error) { return "", ErrNoSecret })
	if p, ok := errors.AsType[*Problems](err); !ok || len(*p) != 9 || !strings.Contains((*p)[1].String(), `target_path: {secret:path}: does not exist`) {
		t.Errorf("%v", err)
	}
}

func TestLiteralTextIsNoReference(t *testing.T) {
	for _, text := range []string{
		"{secret}", "{secret:}", "{secret:a b}", "{secret:-a}", "{secret:.a}", "{env:HOME}", "{env:SLUICE_SECRET_}", "{env:SLUICE_SECRET_FILE}", "{env:SLUICE_SECRET_a}",
		"{file:a}", "{file:}", "{vault:a}", "{secret:a", "secret:a}", "{secret:" + strings.Repeat("a", 129) + "}", "{Secret:a}", "{ secret:a}", "{file:/a\n}",
	} {
		if hasRef(text) {
			t.Errorf("%q is a reference", text)
		}
	}
	for _, text := range []string{"{secret:a}", "a{{secret:a.B-1_}}", "{x:{env:SLUICE_SECRET_A1_}", "{file:/a b}", "{secret}{secret:a}"} {
		if !hasRef(text) {
			t.Errorf("%q is no reference", text)
		}
	}
	literal := parsed(t, strings.Replace(strings.Replace(referring, "{", `{"disable_secret_references":true,`, 1), `"enable_jwt":true,`, "", 1))
	if len(literal.SecretUses()) != 0 || len(literal.UnknownMembers()) != 0 {
		t.Errorf("%v, %v", literal.SecretUses(), literal.UnknownMembers())
	}
}

func TestSecretsOfABundleAreNotPrinted(t *testing.T) {
	b := Bundle{Secrets: Secrets{"one": {"a": "planted"}}}
	for _, text := range []string{fmt.Sprint(b), fmt.Sprintf("%+v", b), fmt.Sprintf("%#v", b), fmt.Sprint(b.Secrets)} {
		if strings.Contains(text, "planted") {
			t.Errorf("%s", text)
		}
	}
}
