package definition

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

var errLocal = errors.New("the machine's own time zone has no name")

// A QuotaClock returns when periods of the calendar end. One serves all quotas with
// the same calendar. It is safe for concurrent use.
type QuotaClock struct {
	unit CalendarUnit
	zone *time.Location
	last atomic.Pointer[span]
}

// A span is a part of a period up to its end, in unix milliseconds.
type span struct{ from, end int64 }

// NewQuotaClock returns the clock of a calendar.
func NewQuotaClock(c Calendar) (*QuotaClock, error) {
	unit, ok := ParseCalendarUnit(c.Every)
	if !ok {
		return nil, fmt.Errorf("quota_renewal_calendar: %q is not a unit", c.Every)
	}
	zone, err := zoneOf(c.Zone)
	if err != nil {
		return nil, fmt.Errorf("quota_renewal_zone: %w", err)
	}
	return &QuotaClock{unit: unit, zone: zone}, nil
}

// Unit returns the length of a period.
func (c *QuotaClock) Unit() CalendarUnit { return c.unit }

// Zone returns the name of the time zone.
func (c *QuotaClock) Zone() string { return c.zone.String() }

// End returns the end of the period that contains now, both in unix milliseconds. The
// end is later than now. Only the first call of a period allocates.
func (c *QuotaClock) End(now int64) int64 {
	if s := c.last.Load(); s != nil && s.from <= now && now < s.end {
		return s.end
	}
	end := c.after(time.UnixMilli(now)).UnixMilli()
	if s := c.last.Load(); s == nil || s.end <= now { // not one of a request that took long
		c.last.Store(&span{from: now, end: end})
	}
	return end
}

// Next returns the end of the period that begins at end, which End returned.
func (c *QuotaClock) Next(end int64) int64 { return c.after(time.UnixMilli(end)).UnixMilli() }

// after returns the first moment after t at which the next period has begun.
func (c *QuotaClock) after(t time.Time) time.Time {
	t = t.In(c.zone)
	year, month, day := t.Date()
	// Of a beginning that clocks show twice the first counts. It may be over when
	// they have gone back to shortly before it.
	for steps := 1; ; steps++ {
		var wall time.Time
		switch c.unit {
		case Hour:
			wall = time.Date(year, month, day, t.Hour()+steps, 0, 0, 0, time.UTC)
		case Day:
			wall = time.Date(year, month, day+steps, 0, 0, 0, 0, time.UTC)
		case Week: // begins on Monday
			wall = time.Date(year, month, day-(int(t.Weekday())+6)%7+7*steps, 0, 0, 0, 0, time.UTC)
		default:
			wall = time.Date(year, month+time.Month(steps), 1, 0, 0, 0, 0, time.UTC)
		}
		if at := c.first(wall); at.After(t) {
			return at
		}
	}
}

// first returns the first moment at which clocks in the zone show wall, or have been
// set forward past it.
func (c *QuotaClock) first(wall time.Time) time.Time {
	const day = 24 * time.Hour // no zone is further from UTC
	early, late := c.offset(wall.Add(-day)), c.offset(wall.Add(day))
	for _, offset := range [...]time.Duration{max(early, late), min(early, late)} {
		if at := wall.Add(-offset); c.offset(at) == offset {
			return at
		}
	}
	start, _ := wall.Add(-early).In(c.zone).ZoneBounds()
	return start
}

// offset returns how far clocks in the zone are ahead of UTC.
func (c *QuotaClock) offset(at time.Time) time.Duration {
	_, seconds := at.In(c.zone).Zone()
	return time.Duration(seconds) * time.Second
}
