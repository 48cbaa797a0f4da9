package main

import (
	"strings"
	"testing"
)

func TestResponsesOfAnotherStateAreFound(t *testing.T) {
	w := new(reloading)
	w.written.Store(7)
	head := func(one, two string) string {
		return "HTTP/1.1 200 OK\r\nX-State-One: " + one + "\r\nContent-Length: 0\r\nX-State-Two: " + two + "\r\n\r\n"
	}
	for _, c := range []struct{ name, head, want string }{
		{"in force", head("5", "5"), ""},
		{"newest", head("7", "7"), ""},
		{"older than the request", head("4", "4"), "state 4, want 5 to 7"},
		{"not written yet", head("8", "8"), "state 8, want 5 to 7"},
		{"mixed", head("5", "6"), `state "5" and of state "6"`},
		{"half", strings.Replace(head("5", "5"), "X-State-Two", "X-Other", 1), `state "5" and of state ""`},
		{"none", "HTTP/1.1 200 OK\r\n\r\n", "without a state"},
		{"no number", head("x", "x"), "state x"},
	} {
		err := w.check(5, []byte(c.head))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
