package model

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

func TestRecordsKeepWhatTheyDoNotKnow(t *testing.T) {
	const text = `{"by_user":"dev","fields":{"n":1.50},"later":{"a":[1,2]},"oauth_info":{"redirect_uri":"x","new":true}}`
	r, err := Parse[KeyRequest]([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	body, err := Write(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse[KeyRequest](body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	once, _ := Write(again)
	if string(once) != string(body) || again.ByUser != "dev" || string(again.Fields["n"]) != "1.50" {
		t.Errorf("written %s, then %s", body, once)
	}
	for _, member := range []string{`"later":{"a":[1,2]}`, `"new":true`} {
		if !strings.Contains(string(body), member) {
			t.Errorf("%s is lost in %s", member, body)
		}
	}
}

func TestAWrongMemberIsNamed(t *testing.T) {
	_, err := Parse[Configuration]([]byte(`{"mail_options":{"email_copy":{"key_email":{"enabled":"yes"}}}}`))
	problems, ok := errors.AsType[*definition.Problems](err)
	if !ok || (*problems)[0].Path != "mail_options.email_copy.key_email.enabled" {
		t.Errorf("problems %v", err)
	}
}

func TestPlaceholdersAreChecked(t *testing.T) {
	for text, good := range map[string]bool{
		"": true, "Hello {{email}}, {{ link }}": true, "{{nobody}}": false, "{{email": false, "{ {email}}": true, "{{}}": false, "{{.Key}}": false,
	} {
		if err := CheckText(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
