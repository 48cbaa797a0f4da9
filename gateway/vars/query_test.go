package vars

import (
	"net/url"
	"testing"
)

func TestPairsAreCut(t *testing.T) {
	for _, c := range []struct{ query, pair, name, value, rest string }{
		{"a=b&c=d", "a=b", "a", "b", "c=d"},
		{"a=b=c", "a=b=c", "a", "b=c", ""},
		{"a", "a", "a", "", ""},
		{"=b&", "=b", "", "b", ""},
		{"&a", "", "", "", "a"},
	} {
		pair, name, value, rest := CutPair([]byte(c.query))
		if string(pair) != c.pair || string(name) != c.name || string(value) != c.value || string(rest) != c.rest {
			t.Errorf("%q: %q %q %q %q", c.query, pair, name, value, rest)
		}
	}
	if _, _, value, _ := CutPair([]byte("a")); value != nil {
		t.Error("a pair without an equals sign has a value")
	}
	if _, _, value, _ := CutPair([]byte("a=")); value == nil {
		t.Error("a pair with an equals sign has none")
	}
}

func TestNamesAreComparedDecoded(t *testing.T) {
	for _, c := range []struct {
		written, text string
		want          bool
	}{
		{"a b", "a b", true},
		{"a+b", "a b", true},
		{"%61%20%62", "a b", true},
		{"%4a", "J", true},
		{"a", "ab", false},
		{"ab", "a", false},
		{"", "", true},
		{"%6", "%6", true},
		{"%6g", "%6g", true},
		{"%2561", "a", false},
	} {
		if got := EqualsDecoded([]byte(c.written), c.text); got != c.want {
			t.Errorf("%q is %q: %t", c.written, c.text, got)
		}
		if got := SameDecoded([]byte(c.written), []byte(url.QueryEscape(c.text))); got != c.want {
			t.Errorf("%q is the same as %q: %t", c.written, c.text, got)
		}
	}
}

func TestParametersAreTakenOut(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"k=1&a=2&%6b=3&k&=4", "a=2&=4"},
		{"k=1", ""},
		{"a&&b", "a&&b"},
		{"a&", "a"},
	} {
		query := []byte(c.query)
		if had, want := HasParameter(query, "k"), c.query[0] == 'k'; had != want {
			t.Errorf("%q has one: %t", c.query, had)
		}
		if got := WithoutParameter(query[:0], query, "k"); string(got) != c.want || HasParameter(got, "k") {
			t.Errorf("%q became %q", c.query, got)
		}
	}
}

func TestTextsAreDecodedAsFarAsTheyCanBe(t *testing.T) {
	for _, c := range []struct {
		written, want string
		whole         bool
	}{
		{"a+b%2Fc", "a b/c", true}, {"%zz%4", "%zz%4", false}, {"", "", true},
	} {
		got, whole := AppendDecoded(nil, []byte(c.written))
		if string(got) != c.want || whole != c.whole {
			t.Errorf("%q: %q %t", c.written, got, whole)
		}
	}
}

func FuzzAppend(f *testing.F) {
	f.Add([]byte("a+b%2F%"))
	f.Fuzz(func(t *testing.T, written []byte) {
		got, whole := AppendDecoded(nil, written)
		want, err := url.QueryUnescape(string(written))
		if whole != (err == nil) || whole && string(got) != want {
			t.Errorf("%q became %q, not %q (%v)", written, got, want, err)
		}
		if !EqualsDecoded(written, string(got)) || IsPlain(written) && string(got) != string(written) {
			t.Errorf("%q is not %q", written, got)
		}
	})
}
