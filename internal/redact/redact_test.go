package redact

import "testing"

func TestSecretsAreTakenOutWhereverTheyStand(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":[{"Password":"x","n":12345678901234567890}]}`: `{"a":[{"Password":"***","n":12345678901234567890}]}`,
		`{"header_map":{"Authorization":"x"},"token":""}`:   `{"header_map":"***","token":""}`,
		`{"password":true,"secret":{},"cookie":["a=b"]}`:    `{"cookie":"***","password":true,"secret":{}}`,
		`{"broken`: `"***"`,
		`<b>`:      `"***"`,
		`"<b>"`:    `"<b>"`,
	} {
		if got := string(JSON([]byte(body))); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if JSON(nil) != nil {
		t.Error("nothing became something")
	}
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
