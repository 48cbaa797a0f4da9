package http1

import "testing"

func TestLinesOfHeadersAreTakenOut(t *testing.T) {
	const all = "A: 1\r\nbB: 2\r\nB: 3\r\na: 4\r\nC: A: 5\r\n"
	for _, c := range []struct {
		names string
		want  string
	}{
		{"A", "bB: 2\r\nB: 3\r\nC: A: 5\r\n"},
		{"b", "A: 1\r\nbB: 2\r\na: 4\r\nC: A: 5\r\n"},
		{"BB", "A: 1\r\nB: 3\r\na: 4\r\nC: A: 5\r\n"},
		{"C", "A: 1\r\nbB: 2\r\nB: 3\r\na: 4\r\n"},
		{"D", all},
		{"", all},
	} {
		if got := string(RemoveLines([]byte(all), c.names)); got != c.want {
			t.Errorf("without %s: %q", c.names, got)
		}
		if has := HasLine([]byte(all), "X", c.names); has != (c.want != all) {
			t.Errorf("has %s: %t", c.names, has)
		}
	}
	if got := RemoveLines([]byte(all), "A", "B", "C", "Bb"); len(got) != 0 {
		t.Errorf("without any: %q", got)
	}
	if got := string(RemoveLines([]byte("A: 1\r\nB: 2"), "b")); got != "A: 1\r\n" {
		t.Errorf("a line without an end: %q", got)
	}
	if len(RemoveLines(nil, "A")) != 0 || HasLine(nil, "A") {
		t.Error("something in nothing")
	}
}
