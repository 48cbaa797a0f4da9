package basic

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestExpressionsTakeOneGroup(t *testing.T) {
	const good = `user=([^&]*)`
	for name, c := range map[string]struct {
		settings *Settings
		want     []string // beginnings
	}{
		"nothing":        {nil, nil},
		"off":            {&Settings{BodyUser: "(", BodyPassword: "x"}, nil},
		"on":             {&Settings{ExtractFromBody: true, BodyUser: good, BodyPassword: `(?:pw|password)=([^&]*)`}, nil},
		"on, with none":  {&Settings{ExtractFromBody: true}, []string{"body_user_regexp: is needed", "body_password_regexp: is needed"}},
		"no group":       {&Settings{ExtractFromBody: true, BodyUser: "user", BodyPassword: good}, []string{"body_user_regexp: must have one group in parentheses, not 0"}},
		"two groups":     {&Settings{ExtractFromBody: true, BodyUser: good, BodyPassword: "(a)(b)"}, []string{"body_password_regexp: must have one group in parentheses, not 2"}},
		"no expression":  {&Settings{ExtractFromBody: true, BodyUser: "(", BodyPassword: good}, []string{"body_user_regexp: must be a regular expression"}},
		"look-around":    {&Settings{ExtractFromBody: true, BodyUser: "(?=a)(b)", BodyPassword: good}, []string{"body_user_regexp: must be a regular expression"}},
		"too long":       {&Settings{ExtractFromBody: true, BodyUser: strings.Repeat("a", 1001), BodyPassword: good}, []string{"body_user_regexp: has 1001 bytes"}},
		"too large":      {&Settings{ExtractFromBody: true, BodyUser: "((?:a{1000}){1000})", BodyPassword: good}, []string{"body_user_regexp: must be a regular expression"}},
		"a group's name": {&Settings{ExtractFromBody: true, BodyUser: "(?P<user>a)", BodyPassword: good}, nil},
	} {
		faults := c.settings.Check()
		if len(faults) != len(c.want) {
			t.Errorf("%s: %v", name, faults)
			continue
		}
		for i, want := range c.want {
			if got := faults[i].Path + ": " + faults[i].Message; !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

func TestWhatIsNotKnownIsKept(t *testing.T) {
	const text = `{"extract_from_body":true,"body_user_regexp":"(a)","body_password_regexp":"(b)","cache_ttl":60}`
	var s Settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(s); err != nil || string(again) != text {
		t.Errorf("%s, %v", again, err)
	}
	if err := json.Unmarshal([]byte(`{"extract_from_body":"yes"}`), &s); err == nil || !strings.Contains(err.Error(), "extract_from_body: must be true or false") {
		t.Error(err)
	}
	var u User
	if err := json.Unmarshal([]byte(`{"password":"x","more":1}`), &u); err != nil || u.Password != "x" {
		t.Error(u, err)
	}
	if again, err := json.Marshal(u); err != nil || string(again) != `{"password":"x","more":1}` {
		t.Errorf("%s, %v", again, err)
	}
}
