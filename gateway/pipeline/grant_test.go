package pipeline

import (
	"testing"
	"unsafe"

	"github.com/sluicegate/sluice/internal/counter"
)

func TestAGrantIsThreeLinesOfTheCache(t *testing.T) {
	if size := unsafe.Sizeof(Grant{}); size > 192 {
		t.Errorf("a grant takes %d bytes", size)
	}
	if end := unsafe.Offsetof(Grant{}.limits); end != 64 {
		t.Errorf("its first line ends at %d", end)
	}
}

func TestTheLimitsOfAGrantTakeNoMemoryBesideIt(t *testing.T) {
	limits := []counter.Limit{{Key: "a"}, {Key: "b"}}
	if n := testing.AllocsPerRun(100, func() {
		g := NewGrant()
		for i, l := range limits {
			if int(g.AddLimit(l)) != i || g.Limits()[i].Key != l.Key {
				t.Fatalf("limits %v", g.Limits())
			}
		}
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
