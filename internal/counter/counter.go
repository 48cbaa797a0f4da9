// Package counter admits calls against rates and quotas, exactly: in the
// memory of one process, or in a Valkey or Redis store that gateways share.
//
// A rate holds in every window of its period, wherever the window begins. A quota
// is a number of calls in a period that its first call opens. A call that is
// refused changes no counter, so that raising a maximum by n admits exactly n more
// calls.
package counter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind is how long a limit holds the calls that it counted.
type Kind uint8

const (
	Quota Kind = iota // Quota forgets all calls at the end of the period that the first one opened.
	Rate              // Rate forgets each call one period later: any window of Period has at most Max.
)

// Bounds of one call. Check reports whether a list of limits is within them.
const (
	MaxLimits = 16        // MaxLimits is how many limits one call may have.
	MaxCalls  = 1<<16 - 1 // MaxCalls is how many calls one Take may count.
	MaxRate   = 1<<31 - 1 // MaxRate is the largest Max of a rate.
	MaxQuota  = 1<<53 - 1 // MaxQuota is the largest Max of a quota: larger numbers are not exact in a script.
	maxPeriod = 200 * 365 * 24 * time.Hour
)

var (
	// ErrUnavailable means that the shared store could not be used and that the
	// outage policy is to refuse. The cause is wrapped too.
	ErrUnavailable = errors.New("counter store unavailable")

	// ErrNotCounter means that a key holds something other than a counter of the
	// limit's kind. Nothing was counted.
	ErrNotCounter = errors.New("not a counter of this kind")

	// ErrTooMany means that a call has more limits than MaxLimits, or fewer counts
	// than limits. Check finds the former when configuration loads.
	ErrTooMany = errors.New("more limits than one call may have")

	// ErrCalls means that Take was called for less than one call or for more than
	// MaxCalls.
	ErrCalls = errors.New("number of calls is not in 1..65535")
)

// A Limit admits Max calls per Period under Key. A Counter may keep Key.
type Limit struct {
	Key    string
	Kind   Kind
	Max    int64         // 0 or less admits nothing; leave a limit that does not apply out of the list
	Period time.Duration // whole milliseconds; a quota with 0 never renews
}

// A Count says what is left of a limit.
type Count struct {
	Remaining int64 // calls left after those just counted, never below 0
	ResetAt   int64 // unix milliseconds: a quota's renewal, or when a rate next frees a call; 0 if no period is open or it never renews
}

// A Counter admits calls against limits that callers share. It is safe for
// concurrent use. A list of limits must not have a key twice.
type Counter interface {
	// Take counts 1 to MaxCalls calls under every limit, all or nothing, and fills
	// counts, which must be at least as long as limits. It returns -1 if the calls
	// are admitted, or else the index of the first limit that cannot admit all of
	// them; then no counter has changed, and counts says what is left. With an error
	// it is unknown whether the calls were counted, and counts is undefined.
	Take(ctx context.Context, limits []Limit, calls int, counts []Count) (refused int, err error)

	// Peek fills counts with what is left now, and counts nothing.
	Peek(ctx context.Context, limits []Limit, counts []Count) error

	// Reset forgets what was counted under keys. A key without a counter is no
	// error.
	Reset(ctx context.Context, keys ...string) error
}

// Check reports whether a list of limits can be counted. Its error names the first
// entry that cannot and what would be valid, but never the key, which may be a
// client's credential. Call it when configuration loads: Take does not repeat it.
func Check(limits []Limit) error {
	if len(limits) > MaxLimits {
		return fmt.Errorf("%d limits on one call: at most %d: %w", len(limits), MaxLimits, ErrTooMany)
	}
	for i, l := range limits {
		if err := l.check(); err != nil {
			return fmt.Errorf("limit %d: %w", i, err)
		}
		for j := range i {
			if limits[j].Key == l.Key {
				return fmt.Errorf("limit %d: key is also that of limit %d", i, j)
			}
		}
	}
	return nil
}

func (l Limit) check() error {
	most := int64(MaxQuota)
	if l.Kind == Rate {
		most = MaxRate
	}
	switch {
	case l.Key == "":
		return errors.New("key is empty")
	case l.Kind > Rate:
		return fmt.Errorf("kind %d is neither Quota nor Rate", l.Kind)
	case l.Max < 0 || l.Max > most:
		return fmt.Errorf("max %d is not in 0..%d", l.Max, most)
	case l.Period < 0 || l.Period > maxPeriod || l.Period%time.Millisecond != 0:
		return fmt.Errorf("period %s is not a whole number of milliseconds in 0..%s", l.Period, maxPeriod)
	case l.Kind == Rate && l.Period == 0:
		return errors.New("period of a rate is 0: at least 1ms")
	}
	return nil
}

// fits is the part of Check that Take needs for its own safety.
func fits(limits []Limit, counts []Count) error {
	if len(limits) > MaxLimits || len(counts) < len(limits) {
		return ErrTooMany
	}
	return nil
}

// micros returns a duration in microseconds, the unit of times in counters: exact
// in a script's numbers until the year 2255.
func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }
