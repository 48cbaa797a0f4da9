package distribution

import (
	"errors"
	"testing"
	"time"
)

// Deliveries hold a filling back. Under many of them a look every two seconds
// might never find a gap, and unknown keys would be answered 503 meanwhile.
func TestALookThatADeliveryHeldBackIsRepeatedSoon(t *testing.T) {
	for _, c := range []struct {
		name    string
		settled bool
		err     error
		want    time.Duration
	}{
		{"all keys are there", true, nil, 2 * time.Second},
		{"a delivery was in the way", false, nil, 100 * time.Millisecond},
		{"the store is away", false, errors.New("away"), 250 * time.Millisecond},
	} {
		if got := untilNextLook(c.settled, c.err); got != c.want {
			t.Errorf("%s: the next look comes after %s, want %s", c.name, got, c.want)
		}
	}
}
