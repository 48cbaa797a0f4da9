package pattern

import (
	"reflect"
	"strings"
	"testing"
)

func TestPatternsAreCutAtTheirPlaceholders(t *testing.T) {
	for _, c := range []struct {
		text       string
		parts      []Part
		expression bool
	}{
		{"/admin", []Part{{Text: "/admin"}}, false},
		{"/v1.2/x", []Part{{Text: "/v1.2/x"}}, false},
		{"/users/{id}/keys", []Part{{Text: "/users/"}, {Expr: OneSegment}, {Text: "/keys"}}, false},
		{"{id:[0-9]{2,3}}", []Part{{Expr: "(?:[0-9]{2,3})"}}, false},
		{"/files/*", []Part{{Text: "/files/"}, {Expr: AllTheRest}}, false},
		{"/a{2,3}$", []Part{{Text: "/a{2,3}$"}}, true},
		{`/\{x}`, []Part{{Text: `/\{x}`}}, true},
		{"^/x", []Part{{Text: "^/x"}}, true},
		{"/a*", []Part{{Text: "/a*"}}, true},
		{"/a$", []Part{{Text: "/a$"}}, true},
		{"/$a", []Part{{Text: "/$a"}}, false},
	} {
		parts, expression, err := Parse(c.text)
		if err != nil || expression != c.expression || !reflect.DeepEqual(parts, c.parts) {
			t.Errorf("%s: %+v, %v, %v", c.text, parts, expression, err)
		}
		if err := Check(c.text); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestWhatIsNoPatternIsToldWhy(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "is empty"},
		{"/" + strings.Repeat("x", MaxLength), "at most 4096"},
		{"/\xff", "is not UTF-8"},
		{"/a/{x", "without a closing one"},
		{"/a[", "missing closing ]"},
		{"/c++", "nested repetition"},
		{"*", "repetition operator"},
		{"/{x:a)|(b}", "{x}: "},
	} {
		if err := Check(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: %v, want %q", c.text, err, c.want)
		}
	}
}
