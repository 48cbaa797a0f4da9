package limit

import (
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

func TestARequestThatIsHandedOverIsCountedOnceUnderOneLimit(t *testing.T) {
	c := memoryAtStart()
	first, other := grantOf(100, 10), grantOf(100, 10)
	for i := range other.Limits() {
		other.Limits()[i].Key += "-other"
	}
	stage := stageOf(t, limiter(c))
	for _, step := range []struct {
		name           string
		front          bool
		key            string
		calls          uint16
		grant          *pipeline.Grant
		left, leftElse int64 // of the quotas
	}{
		{"a request counts", false, "a", 0, first, 9, 10},
		{"and once with the same key", true, "a", 0, first, 8, 10},
		{"and twice with another key", true, "b", 0, first, 6, 10},
		{"and under other limits as well", true, "a", 0, other, 5, 9},
		{"and again as more calls than before", true, "a", 2, first, 2, 9},
	} {
		ex := exchange(first)
		ex.KeyHash = "a"
		if v := stage.Handle(ex); v != pipeline.Next {
			t.Fatalf("%s: %v", step.name, v)
		}
		if step.front {
			next := exchange(step.grant)
			next.KeyHash, next.Parent, next.Charge.Calls = step.key, ex, step.calls
			if v := stage.Handle(next); v != pipeline.Next || !next.Charge.Whole {
				t.Fatalf("%s: %v, counted %v", step.name, v, next.Charge.Whole)
			}
			if step.name == "and once with the same key" && next.Charge.Counts != ex.Charge.Counts {
				t.Errorf("the second one has %v, the first %v", next.Charge.Counts, ex.Charge.Counts)
			}
		}
		_, quota := free(t, c, first)
		_, elsewhere := free(t, c, other)
		if quota != step.left || elsewhere != step.leftElse {
			t.Errorf("%s: %d and %d are left, want %d and %d", step.name, quota, elsewhere, step.left, step.leftElse)
		}
	}
}

// Two APIs may have different limits under one name, which they share.
func TestALowerLimitOfAnAPIBehindAnotherHolds(t *testing.T) {
	c := memoryAtStart()
	high, low := grantOf(100, 10), grantOf(100, 2)
	stage := stageOf(t, limiter(c))
	for i, want := range []pipeline.Verdict{pipeline.Next, pipeline.Rejected} {
		ex := exchange(high)
		ex.KeyHash = "a"
		if v := stage.Handle(ex); v != pipeline.Next {
			t.Fatal(v)
		}
		next := exchange(low)
		next.KeyHash, next.Parent = "a", ex
		if v := stage.Handle(next); v != want {
			t.Errorf("request %d: %v, want %v", i+1, v, want)
		}
	}
}
