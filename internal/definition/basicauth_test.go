package definition

import (
	"strings"
	"testing"
)

func TestExpressionsTakeOneGroup(t *testing.T) {
	const good = `user=([^&]*)`
	for name, c := range map[string]struct {
		settings *BasicAuthSettings
		want     []string // beginnings
	}{
		"nothing":        {nil, nil},
		"off":            {&BasicAuthSettings{BodyUser: "(", BodyPassword: "x"}, nil},
		"on":             {&BasicAuthSettings{ExtractFromBody: true, BodyUser: good, BodyPassword: `(?:pw|password)=([^&]*)`}, nil},
		"on, with none":  {&BasicAuthSettings{ExtractFromBody: true}, []string{"body_user_regexp: is needed", "body_password_regexp: is needed"}},
		"no group":       {&BasicAuthSettings{ExtractFromBody: true, BodyUser: "user", BodyPassword: good}, []string{"body_user_regexp: must have one group in parentheses, not 0"}},
		"two groups":     {&BasicAuthSettings{ExtractFromBody: true, BodyUser: good, BodyPassword: "(a)(b)"}, []string{"body_password_regexp: must have one group in parentheses, not 2"}},
		"no expression":  {&BasicAuthSettings{ExtractFromBody: true, BodyUser: "(", BodyPassword: good}, []string{"body_user_regexp: must be a regular expression"}},
		"look-around":    {&BasicAuthSettings{ExtractFromBody: true, BodyUser: "(?=a)(b)", BodyPassword: good}, []string{"body_user_regexp: must be a regular expression"}},
		"too long":       {&BasicAuthSettings{ExtractFromBody: true, BodyUser: strings.Repeat("a", 1001), BodyPassword: good}, []string{"body_user_regexp: has 1001 bytes"}},
		"too large":      {&BasicAuthSettings{ExtractFromBody: true, BodyUser: "((?:a{1000}){1000})", BodyPassword: good}, []string{"body_user_regexp: must be a regular expression"}},
		"a group's name": {&BasicAuthSettings{ExtractFromBody: true, BodyUser: "(?P<user>a)", BodyPassword: good}, nil},
	} {
		faults := c.settings.check()
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
