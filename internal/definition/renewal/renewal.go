// Package renewal says when a quota renews that goes by the calendar: at the
// beginning of an hour, a day, a week or a month as people in a time zone see it.
package renewal

import (
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a machine without time zones of its own must not renew at other times

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Calendar is how the quota of a policy, a key or an access entry renews when it
// does so by the calendar. It takes the place of quota_renewal_rate.
type Calendar struct {
	Every string `json:"quota_renewal_calendar,omitempty"` // hour, day, week (from Monday) or month
	Zone  string `json:"quota_renewal_zone,omitempty"`     // IANA name, such as Europe/Vienna; "" is UTC
}

// A Unit is how long a period of the calendar is.
type Unit uint8

// The units.
const (
	Hour Unit = iota
	Day
	Week
	Month
)

var unitNames = []string{Hour: "hour", Day: "day", Week: "week", Month: "month"}

// String is the unit's name in definitions.
func (u Unit) String() string { return unitNames[u] }

// UnitOf returns the unit of a name.
func UnitOf(name string) (Unit, bool) {
	at := slices.Index(unitNames, name)
	return Unit(max(at, 0)), at >= 0
}

// longest is what no period of a unit takes longer than: an hour that a change of
// the clocks repeats is one period.
var longest = []time.Duration{Hour: 3 * time.Hour, Day: 50 * time.Hour, Week: 8 * 24 * time.Hour, Month: 33 * 24 * time.Hour}

// Longest is what no period of the unit takes longer than.
func (u Unit) Longest() time.Duration { return longest[u] }

// Check tells what is wrong with c, by the name of the field; nil is right.
func (c *Calendar) Check() []object.Fault {
	var f object.Faults
	if c == nil {
		return nil
	}
	switch {
	case c.Every == "" && c.Zone != "":
		f.Add("quota_renewal_zone", "is without effect unless quota_renewal_calendar is set too")
	case c.Every != "" && !slices.Contains(unitNames, c.Every):
		f.Add("quota_renewal_calendar", `must be "hour", "day", "week" or "month", or be left out`)
	}
	if _, err := location(c.Zone); err != nil {
		f.Add("quota_renewal_zone", "must be the name of a time zone, such as Europe/Vienna or UTC")
	}
	return f
}

// On tells whether c asks for anything; nil does not.
func (c *Calendar) On() bool { return c != nil && c.Every != "" }

// location finds a time zone by its name. That of the machine has none: where a
// gateway runs must not decide when quotas renew.
func location(zone string) (*time.Location, error) {
	if strings.EqualFold(zone, "local") {
		return nil, errLocal
	}
	return time.LoadLocation(zone)
}
