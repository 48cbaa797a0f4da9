package definition

import (
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a machine without time zones of its own must not renew at other times

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Calendar renews the quota of a policy, a key or an access entry by the calendar:
// at the beginning of an hour, day, week or month in a time zone. It takes the place
// of quota_renewal_rate.
type Calendar struct {
	// Period of the calendar at whose beginning the quota renews: hour, day, week (from Monday) or month. Default: quota_renewal_rate counts.
	// Example: "month"
	Every string `json:"quota_renewal_calendar,omitempty" oneof:"hour day week month"`
	// IANA name of the time zone of quota_renewal_calendar, such as Europe/Vienna. Default: UTC.
	// Example: "Europe/Vienna"
	Zone string `json:"quota_renewal_zone,omitempty"`
}

// A CalendarUnit is the length of a period of the calendar.
type CalendarUnit uint8

// The units of the calendar.
const (
	Hour CalendarUnit = iota
	Day
	Week
	Month
)

var unitNames = []string{Hour: "hour", Day: "day", Week: "week", Month: "month"}

// String returns the unit's name in definitions.
func (u CalendarUnit) String() string { return unitNames[u] }

// ParseCalendarUnit returns the unit of a name.
func ParseCalendarUnit(name string) (CalendarUnit, bool) {
	at := slices.Index(unitNames, name)
	return CalendarUnit(max(at, 0)), at >= 0
}

// longest is an upper bound of the periods of each unit: an hour that a change of
// the clocks repeats is one period.
var longest = []time.Duration{Hour: 3 * time.Hour, Day: 50 * time.Hour, Week: 8 * 24 * time.Hour, Month: 33 * 24 * time.Hour}

// Longest returns an upper bound of the unit's periods.
func (u CalendarUnit) Longest() time.Duration { return longest[u] }

// check returns what is wrong with c, which may be nil, by the name of the member.
func (c *Calendar) check() (f object.Faults) {
	if c == nil {
		return nil
	}
	switch {
	case c.Every == "" && c.Zone != "":
		f.Add("quota_renewal_zone", "is without effect unless quota_renewal_calendar is set too")
	case c.Every != "" && !slices.Contains(unitNames, c.Every):
		f.Add("quota_renewal_calendar", `must be "hour", "day", "week" or "month", or be left out`)
	}
	if _, err := zoneOf(c.Zone); err != nil {
		f.Add("quota_renewal_zone", "must be the name of a time zone, such as Europe/Vienna or UTC")
	}
	return f
}

// On reports whether c sets a calendar. c may be nil.
func (c *Calendar) On() bool { return c != nil && c.Every != "" }

// zoneOf returns the time zone of a name. The machine's own is refused: where a
// gateway runs must not decide when quotas renew.
func zoneOf(zone string) (*time.Location, error) {
	if strings.EqualFold(zone, "local") {
		return nil, errLocal
	}
	return time.LoadLocation(zone)
}
