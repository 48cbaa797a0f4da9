package main

import (
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{5, 1, 3}, 3}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestScenariosUseAllKeysAndTokensOnce(t *testing.T) {
	s := scenario{words: map[string]string{"ADDR": "h:1", "PREFIX": "p_"}, rate: 10, long: 500 * time.Millisecond}
	out := string(expand("GET http://$ADDR/ $KEY $TOKEN\n", []string{"a", "b"}, s))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d targets, want 5", len(lines))
	}
	seen := make(map[string]bool)
	for i, line := range lines {
		fields := strings.Fields(line)
		if fields[1] != "http://h:1/" || fields[2] != []string{"a", "b"}[i%2] || !strings.HasPrefix(fields[3], "p_") || seen[fields[3]] {
			t.Errorf("target %d is %q", i, line)
		}
		seen[fields[3]] = true
	}
}

func TestContendersAreChosenByName(t *testing.T) {
	b := &bench{options: options{only: "Shared"}}
	var names []string
	for _, c := range b.chosen(b.contenders()) {
		names = append(names, c.name)
	}
	if got := strings.Join(names, "; "); got != "bare fasthttp; Sluice, the same with a shared store; Sluice, shared store, one hot key" {
		t.Errorf("chosen: %s", got)
	}
}
