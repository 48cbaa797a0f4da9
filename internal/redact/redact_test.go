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
