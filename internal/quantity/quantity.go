// Package quantity reads and writes sizes and durations as people write them.
package quantity

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size in bytes. As text it has a unit: B, KiB, MiB, GiB or TiB.
type Bytes int64

// units of Bytes, largest first.
var units = []struct {
	name string
	size Bytes
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String writes b with the largest unit that divides it: 4MiB, 1536KiB, 100B.
func (b Bytes) String() string {
	for _, u := range units {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return "0B"
}

// MarshalText writes b as String does.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads what ParseBytes reads.
func (b *Bytes) UnmarshalText(text []byte) error {
	parsed, err := ParseBytes(string(text))
	if err == nil {
		*b = parsed
	}
	return err
}

// ParseBytes reads a size: a whole number and a unit, without a space. Decimal
// units are refused, since half of their readers take 64MB for 64MiB.
func ParseBytes(s string) (Bytes, error) {
	digits := strings.TrimLeft(s, "0123456789")
	number, unit := s[:len(s)-len(digits)], digits
	switch {
	case s == "":
		return 0, errors.New("is empty; want a size such as 10MiB")
	case number == "":
		return 0, fmt.Errorf("%s is not a size; want a whole number and a unit, such as 10MiB", Quote(s))
	case unit == "":
		return 0, fmt.Errorf("%s has no unit; write %sB, %sKiB, %sMiB or %sGiB", Quote(s), number, number, number, number)
	}
	for _, u := range units {
		if u.name == unit {
			return multiply(number, u.size)
		}
	}
	if meant := meantUnit(unit); meant != "" {
		return 0, fmt.Errorf("%s has the unknown unit %s; did you mean %s%s?", Quote(s), Quote(unit), number, meant)
	}
	return 0, fmt.Errorf("%s is not a size; want a whole number and one of B, KiB, MiB, GiB, TiB, such as 10MiB", Quote(s))
}

func multiply(number string, unit Bytes) (Bytes, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("%s is too large for a size", Quote(number))
	}
	return Bytes(n) * unit, nil
}

// meantUnit finds the unit behind M, mb, MB, Mi and mib.
func meantUnit(unit string) string {
	letters := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(unit), "b"), "i")
	for _, u := range units {
		if letters == strings.ToLower(strings.TrimSuffix(u.name, "iB")) || letters == "" && u.name == "B" {
			return u.name
		}
	}
	return ""
}

// ParseDuration reads a duration with units, of which d is a day of 24 hours. It refuses what time.ParseDuration
// takes for mere convenience: a bare 0 and negative times.
func ParseDuration(s string) (time.Duration, error) {
	if s == "" {
		return 0, errors.New("is empty; want a duration such as 15s")
	}
	if strings.Trim(s, "0123456789.") == "" {
		return 0, fmt.Errorf("%s has no unit; write %ss, %sms, %sm or %sh", Quote(s), s, s, s, s)
	}
	days, rest := cutDays(s)
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("%s is not a duration; want numbers with the units d, h, m, s, ms, such as 1m30s", Quote(s))
	}
	if d += days; d < 0 {
		return 0, fmt.Errorf("%s is negative; want a duration such as 15s", Quote(s))
	}
	return d, nil
}

// cutDays takes whole days, which are of 24 hours, off the beginning of a
// duration.
func cutDays(s string) (days time.Duration, rest string) {
	before, after, found := strings.Cut(s, "d")
	n, err := strconv.ParseUint(before, 10, 16)
	if !found || err != nil {
		return 0, s
	}
	if after == "" {
		after = "0s"
	}
	return time.Duration(n) * 24 * time.Hour, after
}

// FormatDuration writes d without the zero parts of time.Duration.String:
// 15s, 1m, 1h30m, and from two days on whole ones as such: 8d.
func FormatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Quote shows a foreign text inside a message, shortened.
func Quote(s string) string {
	const most = 64
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}
