package graphql

import "testing"

func TestCharactersThatEndLinesToSomeAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"{ a }\r\n\t# é 世 \u2027\u202a\u00a0\ufeff\U0001F600": -1,
		"#\u2028": 1, "#\u2029": 1, "#é\u0085": 3, "\v": 0, "#\f": 1, "#\x00": 1, "#\x1f": 1, "#\x7f": 1, "\"\"\"\u2028\"\"\"": 3, "": -1, "\xc2": -1, "\xe2\x80": -1,
	} {
		if got := doubtful([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
