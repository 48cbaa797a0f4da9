package definition

import (
	"strings"
	"testing"
	"time"
)

func clock(t testing.TB, every, zone string) *QuotaClock {
	t.Helper()
	c, err := NewQuotaClock(Calendar{Every: every, Zone: zone})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPeriodsEndWhereTheCalendarSaysInTheZone(t *testing.T) {
	for _, c := range []struct{ every, zone, at, end string }{
		{"hour", "", "2026-03-01T10:20:30Z", "2026-03-01T11:00:00Z"},
		{"hour", "", "2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z"},
		{"hour", "Asia/Kolkata", "2026-03-01T10:20:30Z", "2026-03-01T10:30:00Z"},
		{"hour", "Asia/Kathmandu", "2026-03-01T10:20:30Z", "2026-03-01T11:15:00Z"},
		{"day", "", "2026-03-01T23:59:59.999Z", "2026-03-02T00:00:00Z"},
		{"day", "America/New_York", "2026-01-01T04:59:59Z", "2026-01-01T05:00:00Z"},
		{"day", "America/New_York", "2026-01-01T05:00:00Z", "2026-01-02T05:00:00Z"},
		{"week", "", "2026-11-21T20:00:00Z", "2026-11-23T00:00:00Z"}, // a Saturday
		{"week", "", "2026-11-22T23:59:59Z", "2026-11-23T00:00:00Z"}, // a Sunday
		{"week", "", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"}, // a Monday
		{"month", "", "2026-01-31T12:00:00Z", "2026-02-01T00:00:00Z"},
		{"month", "", "2026-02-28T12:00:00Z", "2026-03-01T00:00:00Z"},
		{"month", "", "2028-02-29T12:00:00Z", "2028-03-01T00:00:00Z"}, // a leap year
		{"month", "", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z"},
		{"month", "Pacific/Auckland", "2026-12-31T12:00:00Z", "2027-01-31T11:00:00Z"},

		// Clocks go from 2:00 to 3:00, and in autumn from 3:00 to 2:00.
		{"day", "Europe/Vienna", "2026-03-29T00:00:00Z", "2026-03-29T22:00:00Z"}, // 23 hours
		{"day", "Europe/Vienna", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"}, // 25 hours
		{"hour", "Europe/Vienna", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
		{"hour", "Europe/Vienna", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
		{"hour", "Europe/Vienna", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"}, // the hour that comes twice is one
		{"hour", "Europe/Vienna", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"},
		{"week", "Europe/Vienna", "2026-10-19T00:00:00Z", "2026-10-25T23:00:00Z"},
		{"month", "Europe/Vienna", "2026-03-15T00:00:00Z", "2026-03-31T22:00:00Z"},
		{"month", "Europe/Vienna", "2026-10-15T00:00:00Z", "2026-10-31T23:00:00Z"},

		// Half an hour: clocks go from 2:00 to 2:30 and from 2:00 to 1:30.
		{"hour", "Australia/Lord_Howe", "2026-10-03T15:10:00Z", "2026-10-03T15:30:00Z"},
		{"hour", "Australia/Lord_Howe", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z"},
		{"hour", "Australia/Lord_Howe", "2026-04-04T14:10:00Z", "2026-04-04T15:30:00Z"},

		// There is no midnight on the day that clocks go forward, or there are two.
		{"day", "Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00Z"},
		{"day", "Africa/Cairo", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"},
		{"day", "America/Havana", "2026-10-31T12:00:00Z", "2026-11-01T04:00:00Z"},
		{"day", "America/Havana", "2026-11-01T04:30:00Z", "2026-11-02T05:00:00Z"},
		{"day", "America/Havana", "2026-11-01T05:30:00Z", "2026-11-02T05:00:00Z"},

		// A day that never was.
		{"day", "Pacific/Apia", "2011-12-29T20:00:00Z", "2011-12-30T10:00:00Z"},
		{"day", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339Nano, c.at)
		if err != nil {
			t.Fatal(err)
		}
		got := time.UnixMilli(clock(t, c.every, c.zone).End(at.UnixMilli())).UTC().Format(time.RFC3339)
		if got != c.end {
			t.Errorf("the %s of %s in %q ends at %s, want %s", c.every, c.at, c.zone, got, c.end)
		}
	}
}

// Whatever the zone, periods follow each other without gaps, and whoever asks at
// any moment of one is told the same end.
func TestPeriodsHaveOneEndWheneverAsked(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, zone := range []string{
		"UTC", "Europe/Vienna", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Africa/Cairo",
		"America/Havana", "Asia/Kolkata", "Pacific/Chatham", "Pacific/Apia", "America/Asuncion", "Asia/Beirut", "Africa/Casablanca",
	} {
		for unit, every := range unitNames {
			c := clock(t, every, zone)
			step := longest[unit] / 7
			end := from
			for at := from; at.Before(from.AddDate(2, 0, 0)); at = at.Add(step) {
				for !at.Before(end) {
					next := c.after(end)
					if !next.After(end) || next.Sub(end) > longest[unit] {
						t.Fatalf("%s, %s: after %s comes %s", zone, every, end, next)
					}
					end = next
				}
				if got := c.after(at); !got.Equal(end) {
					t.Fatalf("%s, %s: at %s the period ends at %s, not %s", zone, every, at, got, end)
				}
			}
		}
	}
}

func TestClockKeepsThePeriodThatItIsIn(t *testing.T) {
	c := clock(t, "day", "")
	now := time.Date(2026, 5, 5, 12, 0, 0, 0, time.UTC).UnixMilli()
	c.End(now)
	if n := testing.AllocsPerRun(100, func() { c.End(now + 1000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	const day = 86_400_000
	if late := c.End(now - day); late != c.End(now)-day {
		t.Errorf("a request of the day before is told %d", late)
	}
	if c.last.Load().end != c.End(now) {
		t.Error("a late request moved the clock back")
	}
}

func TestCalendarsThatCannotBeKeptAreRefused(t *testing.T) {
	for _, c := range []struct {
		calendar *Calendar
		want     string
	}{
		{nil, ""},
		{&Calendar{}, ""},
		{&Calendar{Every: "week"}, ""},
		{&Calendar{Every: "month", Zone: "Asia/Tokyo"}, ""},
		{&Calendar{Every: "year"}, "quota_renewal_calendar: must be"},
		{&Calendar{Every: "Month"}, "quota_renewal_calendar: must be"},
		{&Calendar{Zone: "UTC"}, "quota_renewal_zone: is without effect"},
		{&Calendar{Every: "day", Zone: "Europe/Nowhere"}, "quota_renewal_zone: must be the name"},
		{&Calendar{Every: "day", Zone: "Local"}, "quota_renewal_zone: must be the name"},
		{&Calendar{Every: "day", Zone: "../../etc/passwd"}, "quota_renewal_zone: must be the name"},
	} {
		var said []string
		for _, f := range c.calendar.check() {
			said = append(said, f.Path+": "+f.Message)
		}
		got := strings.Join(said, "; ")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.calendar, got, c.want)
		}
		if c.calendar.On() && c.want == "" {
			if _, err := NewQuotaClock(*c.calendar); err != nil {
				t.Errorf("%+v: %v", c.calendar, err)
			}
		}
	}
}

func BenchmarkEnd(b *testing.B) {
	c := clock(b, "month", "Europe/Vienna")
	now := time.Now().UnixMilli()
	b.ReportAllocs()
	for b.Loop() {
		c.End(now)
	}
}
