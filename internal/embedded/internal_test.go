package embedded

import (
	"slices"
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

func FuzzPidFile(f *testing.F) {
	f.Add("4711\n/d/pg\n1700000000\n5432\n/d/run\n")
	f.Fuzz(func(t *testing.T, text string) {
		if record, ok := parsePidFile(text); ok && record.pid <= 1 {
			t.Errorf("%q gives process %d, which must never be signalled", text, record.pid)
		}
	})
}
