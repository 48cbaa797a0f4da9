package texts

import (
	"fmt"
	"strings"
	"testing"
)

func TestTextsInABlockStayAsTheyAre(t *testing.T) {
	var b Block
	var got, want []string
	for i := range 5000 {
		long := strings.Repeat("x", i*7%(size/4))
		got = append(got, b.Join("rate-", fmt.Sprint(i), long))
		want = append(want, fmt.Sprint("rate-", i, long))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("text %d is %.20q, want %.20q", i, got[i], want[i])
		}
	}
	if b.Join() != "" || (*Block)(nil).Join("a", "b") != "ab" {
		t.Error("no text, or one that lies alone")
	}
}

func TestTextsInABlockShareTheirAllocations(t *testing.T) {
	var b Block
	if n := testing.AllocsPerRun(10_000, func() { b.Join("rate-", "0123456789abcdef", "-1700000000") }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}
