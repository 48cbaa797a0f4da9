package main

import (
	"fmt"
	"testing"
)

func TestCoresAreSplit(t *testing.T) {
	for _, c := range []struct {
		cores, procs int
		want         string
	}{
		{1, 1, "[] 0 0"}, {2, 2, "[] 0 0"}, {2, 1, "[1] 0 0"}, {3, 1, "[2] 0 1"}, {8, 2, "[6 7] 0 1"}, {3, 2, "[1 2] 0 0"},
	} {
		contenders, client, upstream := coresOf(c.cores, c.procs)
		if got := fmt.Sprint(contenders, client, upstream); got != c.want {
			t.Errorf("%d cores, %d of them for contenders: %s, want %s", c.cores, c.procs, got, c.want)
		}
	}
}

func TestListsOfNumbers(t *testing.T) {
	for list, want := range map[string]string{"": "[]", "30": "[30]", "30,50,": "[30 50]", "x": "", "-1": "", "1.5": ""} {
		got, err := numbers("-shares", list)
		if (err == nil) != (want != "") || err == nil && fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v, want %s", list, got, err, want)
		}
	}
}
