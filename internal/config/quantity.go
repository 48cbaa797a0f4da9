package config

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

// byteUnits are the units of Bytes, largest first.
var byteUnits = []struct {
	name string
	size Bytes
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String writes b with the largest unit that divides it: 4MiB, 1536KiB, 100B.
func (b Bytes) String() string {
	for _, u := range byteUnits {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return "0B"
}

// MarshalText writes b as String does.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText parses a size such as 10MiB.
func (b *Bytes) UnmarshalText(text []byte) error {
	parsed, err := parseBytes(string(text))
	if err == nil {
		*b = parsed
	}
	return err
}

// parseBytes parses a size: a whole number and a unit, without a space. Decimal units are
// refused, because many readers take 64MB for 64MiB.
func parseBytes(s string) (Bytes, error) {
	digits := strings.TrimLeft(s, "0123456789")
	number, unit := s[:len(s)-len(digits)], digits
	switch {
	case s == "":
		return 0, errors.New("is empty; want a size such as 10MiB")
	case number == "":
		return 0, fmt.Errorf("%s is not a size; want a whole number and a unit, such as 10MiB", quote(s))
	case unit == "":
		return 0, fmt.Errorf("%s has no unit; write %sB, %sKiB, %sMiB or %sGiB", quote(s), number, number, number, number)
	}
	for _, u := range byteUnits {
		if u.name == unit {
			return multiplyBytes(number, u.size)
		}
	}
	if meant := nearestUnit(unit); meant != "" {
		return 0, fmt.Errorf("%s has the unknown unit %s; did you mean %s%s?", quote(s), quote(unit), number, meant)
	}
	return 0, fmt.Errorf("%s is not a size; want a whole number and one of B, KiB, MiB, GiB, TiB, such as 10MiB", quote(s))
}

func multiplyBytes(number string, unit Bytes) (Bytes, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("%s is too large for a size", quote(number))
	}
	return Bytes(n) * unit, nil
}

// nearestUnit returns the unit meant by M, mb, MB, Mi and mib.
func nearestUnit(unit string) string {
	letters := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(unit), "b"), "i")
	for _, u := range byteUnits {
		if letters == strings.ToLower(strings.TrimSuffix(u.name, "iB")) || letters == "" && u.name == "B" {
			return u.name
		}
	}
	return ""
}

// parseDuration parses a duration with units, including d for a day of 24 hours. It
// refuses a bare 0 and negative durations.
func parseDuration(s string) (time.Duration, error) {
	if s == "" {
		return 0, errors.New("is empty; want a duration such as 15s")
	}
	if strings.Trim(s, "0123456789.") == "" {
		return 0, fmt.Errorf("%s has no unit; write %ss, %sms, %sm or %sh", quote(s), s, s, s, s)
	}
	days, rest := cutDays(s)
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("%s is not a duration; want numbers with the units d, h, m, s, ms, such as 1m30s", quote(s))
	}
	if d += days; d < 0 {
		return 0, fmt.Errorf("%s is negative; want a duration such as 15s", quote(s))
	}
	return d, nil
}

// cutDays cuts whole days of 24 hours off the beginning of a duration.
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

// formatDuration writes d without the zero parts of time.Duration.String: 15s, 1m, 1h30m,
// and whole days from two on: 8d.
func formatDuration(d time.Duration) string {
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

// quote quotes a text of the user inside a message, shortened.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}
