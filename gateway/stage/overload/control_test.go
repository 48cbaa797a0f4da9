package overload

import (
	"testing"
	"time"
)

var shortly = Options{TargetDelay: 25 * time.Millisecond, MaxDelay: 250 * time.Millisecond}

// steps feeds a control with windows of the same load.
func steps(c *control, delays ...time.Duration) (last phase) {
	for _, d := range delays {
		last = c.step(reading{delay: d, passed: 10_000, wanted: 10_000})
	}
	return last
}

const (
	late = 40 * time.Millisecond
	good = time.Millisecond
)

func TestSheddingBeginsWithTheSecondLateWindow(t *testing.T) {
	for _, c := range []struct {
		name   string
		delays []time.Duration
		want   phase
	}{
		{"in time", []time.Duration{good, 0, good, 25 * time.Millisecond}, calm},
		{"one late window", []time.Duration{good, late}, watching},
		{"a second one", []time.Duration{good, late, late}, shedding},
		{"late windows apart", []time.Duration{late, good, late, good, late, good}, watching},
		{"late windows apart, then two", []time.Duration{late, good, late, late}, shedding},
		{"in time for half a second", []time.Duration{late, good, good, good, good, good, good, good, good, good, good}, calm},
	} {
		control := control{Options: shortly}
		if got := steps(&control, c.delays...); got != c.want {
			t.Errorf("%s: phase %d, want %d", c.name, got, c.want)
		}
	}
}

// Seven calls are not what is too much, however late they are.
func TestAFewCallsAreNotShed(t *testing.T) {
	c := control{Options: shortly}
	for range 100 {
		if got := c.step(reading{delay: 70 * time.Millisecond, passed: 100, wanted: 100}); got == shedding {
			t.Fatal("calls are shed")
		}
	}
}

func TestSheddingStopsAfterASecondWithRoomForAll(t *testing.T) {
	c := control{Options: shortly}
	steps(&c, late, late)
	room := reading{delay: good, passed: 5000, wanted: 5000}
	for i := range spareToStop - 1 {
		if got := c.step(room); got != shedding {
			t.Fatalf("shedding stopped after %d windows", i+1)
		}
	}
	c.step(reading{delay: good, passed: 5000, wanted: 50_000}) // more than may pass
	for i := range spareToStop {
		if got := c.step(room); (got == calm) != (i == spareToStop-1) {
			t.Fatalf("phase %d after %d windows", got, i+1)
		}
	}
	if c.limit != 0 || c.capacity != 0 || c.TargetDelay == 0 {
		t.Errorf("left over: %+v", c)
	}
}

func TestTheLimitStaysWithinBounds(t *testing.T) {
	c := control{Options: shortly}
	steps(&c, late, late)
	for range 200 { // as much as ever is served, and late all the same
		c.step(reading{delay: time.Second, passed: 10_000, wanted: 10_000})
	}
	if c.limit < 0.9*leastShare*10_000 || c.limit > 1.1*leastShare*10_000 {
		t.Errorf("limit %.0f, want %.0f", c.limit, leastShare*10_000)
	}
	for range 200 {
		if c.step(reading{delay: 0, passed: 10_000, shed: 2_000, wanted: 12_000}) != shedding {
			return // it had room for all
		}
	}
	t.Errorf("the limit rose to %.0f only, and calls are shed for ever", c.limit)
}
