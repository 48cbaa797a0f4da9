package embedded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTheNewestMajorIsPreferredAndDataBindsToItsOwn(t *testing.T) {
	dirs := []string{"/usr/lib/postgresql/9/bin", "/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/13/bin"}
	slices.SortStableFunc(dirs, func(a, b string) int { return pathMajor(b) - pathMajor(a) })
	if want := "/usr/lib/postgresql/15/bin"; dirs[0] != want {
		t.Errorf("first is %s, want %s", dirs[0], want)
	}
	found := []installation{{"a", 17}, {"b", 15}, {"c", 15}}
	for major, want := range map[int]string{0: "a", 17: "a", 15: "b"} {
		if got, err := choose(found, major, "/data"); err != nil || got.dir != want {
			t.Errorf("for data of %d: %v, %v; want %s", major, got, err, want)
		}
	}
	_, err := choose(found, 16, "/data")
	if want := "data was made by 16 (/data), installed: 17, 15; install postgresql-16 or run: sluice export with the old server"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPidFilesAreReadAsFarAsTheyAreWritten(t *testing.T) {
	cases := []struct {
		name, text string
		want       pidRecord
		ok         bool
	}{
		{"whole", "4711\n/d/pg\n1700000000\n5432\n/d/run\n\n 1 2\nready   \n", pidRecord{4711, "/d/run"}, true},
		{"early", "4711\n/d/pg\n1700000000\n5432\n\n", pidRecord{4711, ""}, true},
		{"one line", "4711", pidRecord{4711, ""}, true},
		{"single-user server", "-4711\n/d/pg\n", pidRecord{}, false},
		{"empty", "", pidRecord{}, false},
		{"init", "1\n", pidRecord{}, false},
		{"garbage", "\x00\x01\n", pidRecord{}, false},
	}
	for _, c := range cases {
		if got, ok := parsePidFile(c.text); got != c.want || ok != c.ok {
			t.Errorf("%s: %v %v, want %v %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func message(kind byte, body string) string {
	return string(kind) + string([]byte{0, 0, byte((len(body) + 4) >> 8), byte(len(body) + 4)}) + body
}

var (
	authenticated = message('R', "\x00\x00\x00\x00")
	ready         = message('Z', "I")
	starting      = message('E', "SFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00")
)

func TestAnswersAreRead(t *testing.T) {
	cases := []struct {
		name, in, want, err string
	}{
		{"greeting", authenticated + message('S', "a\x00b\x00") + message('K', "12345678") + ready, "[]", ""},
		{"rows", message('T', "") + message('D', "\x00\x01\x00\x00\x00\x02/d") + message('D', "\x00\x01\x00\x00\x00\x01x") + message('C', "SELECT 2\x00") + ready, "[/d x]", ""},
		{"null", message('D', "\x00\x01\xff\xff\xff\xff") + ready, "[]", ""},
		{"fatal, then closed", starting, "[]", "starting up (SQLSTATE 57P03)"},
		{"error, then ready", starting + ready, "[]", "starting up (SQLSTATE 57P03)"},
		{"password wanted", message('R', "\x00\x00\x00\x03"), "[]", "wants a password"},
		{"cut short", authenticated, "[]", "EOF"},
		{"length below its own", "R\x00\x00\x00\x01", "[]", "claims a length of 1"},
		{"length beyond reason", "R\x7f\x00\x00\x00", "[]", "claims a length"},
		{"column longer than its row", message('D', "\x00\x01\x00\x00\x00\x09x") + ready, "[]", ""},
	}
	for _, c := range cases {
		rows, err := readAnswer(bufio.NewReader(strings.NewReader(c.in)))
		if got := fmt.Sprint(rows); got != c.want {
			t.Errorf("%s: rows %s, want %s", c.name, got, c.want)
		}
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
	}
	_, err := readAnswer(bufio.NewReader(strings.NewReader(starting)))
	if refusal, ok := errors.AsType[*serverError](err); !ok || refusal.Code != codeNotNow {
		t.Errorf("got %v, want the code of a server that is starting", err)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{authenticated + ready, starting, message('D', "\x00\x01\x00\x00\x00\x02/d") + ready} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		rows, err := readAnswer(bufio.NewReader(bytes.NewReader(in)))
		if err != nil && rows != nil {
			t.Errorf("rows %q beside the error %v", rows, err)
		}
	})
}

func FuzzPidFile(f *testing.F) {
	f.Add("4711\n/d/pg\n1700000000\n5432\n/d/run\n")
	f.Fuzz(func(t *testing.T, text string) {
		if record, ok := parsePidFile(text); ok && record.pid <= 1 {
			t.Errorf("%q gives process %d, which must never be signalled", text, record.pid)
		}
	})
}
