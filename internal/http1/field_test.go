package http1

import "testing"

func TestConnectionLinesNameOthers(t *testing.T) {
	const lines = "X-A: 1\r\nX-B: 2\r\nx-a: 3\r\nUpgrade: y\r\n"
	for _, c := range []struct {
		name   string
		values []string
		left   string
		close  bool
	}{
		{"none", nil, lines, false},
		{"keep-alive", []string{"Keep-Alive"}, lines, false},
		{"close", []string{" CLOSE "}, lines, true},
		{"a line, in whatever case", []string{"X-a"}, "X-B: 2\r\nUpgrade: y\r\n", false},
		{"several values", []string{"x-b", "close, ,upgrade"}, "X-A: 1\r\nx-a: 3\r\n", true},
		{"part of a name", []string{"x"}, lines, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l Connection
			for _, v := range c.values {
				l.Add([]byte(v))
			}
			if got := string(l.Strip([]byte(lines))); got != c.left || l.Close != c.close || l.TooMany {
				t.Errorf("left %q, close %t, too many %t; want %q, %t", got, l.Close, l.TooMany, c.left, c.close)
			}
		})
	}
	var l Connection
	for range 5 {
		l.Add([]byte("x"))
	}
	if !l.TooMany {
		t.Error("five lines are not too many")
	}
}

func TestListsKnowTheirElements(t *testing.T) {
	for _, c := range []struct {
		list, element string
		want          bool
	}{
		{"a", "a", true}, {"b, A", "a", true}, {"ab", "a", false}, {"", "a", false}, {"a;q=1", "a", false}, {"\ta\t,b", "a", true},
	} {
		if got := Lists([]byte(c.list), []byte(c.element)); got != c.want {
			t.Errorf("%q lists %q: %t", c.list, c.element, got)
		}
	}
}

func TestTokensAndHosts(t *testing.T) {
	for _, c := range []struct {
		text        string
		token, host bool
	}{
		{"abc-1.x", true, true}, {"", false, false}, {"a b", false, false}, {"a:80", false, true}, {"[::1]:80", false, true}, {"a^b", true, false}, {"a\x80", false, false}, {"a/b", false, false},
	} {
		if got := IsToken([]byte(c.text)); got != c.token {
			t.Errorf("%q is a token: %t", c.text, got)
		}
		if got := IsHost([]byte(c.text)); got != c.host {
			t.Errorf("%q is a host: %t", c.text, got)
		}
	}
}

func TestNamesAreComparedWhateverTheirCase(t *testing.T) {
	if !EqualFold([]byte("X-Abc"), "x-abc") || EqualFold([]byte("X-Abd"), "x-abc") || EqualFold([]byte("x@abc"), "x`abc") {
		t.Error("EqualFold")
	}
	if !HasPrefix([]byte("TEXT/html"), "text/") || HasPrefix([]byte("tex"), "text/") {
		t.Error("HasPrefix")
	}
}
