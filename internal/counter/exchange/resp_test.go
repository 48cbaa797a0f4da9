package exchange

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	line := strings.Repeat("x", mostLine)
	for text, want := range map[string]struct {
		reply string
		size  int
		err   string
	}{
		"":                       {},
		"$":                      {},
		"$3\r":                   {},
		"$3\r\nabc":              {},
		"$3\r\nabc\r":            {},
		"$3\r\nabc\r\n":          {"abc", 9, ""},
		"$3\r\nabc\r\n+OK\r\n":   {"abc", 9, ""},
		"$0\r\n\r\n":             {"", 6, ""},
		"+OK\r\n":                {"OK", 5, ""},
		"+\r\n":                  {"", 3, ""},
		"-ERR no\r\n":            {"", 9, "ERR no"},
		"$3\r\nabcd\r\n":         {"", 0, "not as long as it said"},
		"$-1\r\n":                {"", 0, `length "-1"`},
		"$+1\r\na\r\n":           {"", 0, `length "+1"`},
		"$\r\n":                  {"", 0, `length ""`},
		"$65537\r\n":             {"", 0, `length "65537"`},
		"$9999999999999999999\r": {},
		"$99999999999999999999\r\n": {
			"", 0, `length "99999999999999999999"`,
		},
		"$3\nabc\r\n":    {"", 0, "no proper end"},
		"+\n":            {"", 0, "no proper end"},
		":1\r\n":         {"", 0, `begins with ':'`},
		"\r\n":           {"", 0, `begins with '\r'`},
		"-" + line:       {"", 0, "a line of more than 1024 bytes"},
		"-" + line[:500]: {},
	} {
		reply, size, err := parse([]byte(text))
		if string(reply) != want.reply || size != want.size || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%.40q: %q, %d, %v, want %+v", text, reply, size, err, want)
		}
		if _, refused := errors.AsType[Refusal](err); refused != (want.size > 0 && want.err != "") {
			t.Errorf("%.40q: refused %v", text, refused)
		}
	}
}

// However an answer comes in pieces, it is understood when it is whole and not
// before, and what follows it changes nothing.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"$3\r\nabc\r\n", "+OK\r\n", "-ERR no\r\n", "$0\r\n\r\n+", "$-1\r\n", ":1\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, size, err := parse(b)
		if size < 0 || size > len(b) {
			t.Fatalf("size %d of %d bytes", size, len(b))
		}
		if size == 0 {
			return
		}
		again, same, errAgain := parse(b[:size])
		if string(again) != string(reply) || same != size || (err == nil) != (errAgain == nil) {
			t.Errorf("alone: %q, %d, %v, and before more %q, %d, %v", again, same, errAgain, reply, size, err)
		}
		for i := range size {
			if _, n, err := parse(b[:i]); n != 0 || err != nil {
				t.Errorf("%d of %d bytes: %d, %v", i, size, n, err)
			}
		}
	})
}
