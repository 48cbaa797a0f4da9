package config

import (
	"strings"
	"testing"
	"time"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0B": 0, "1B": 1, "1KiB": 1024, "10MiB": 10 << 20, "3GiB": 3 << 30, "2TiB": 2 << 40, "1536KiB": 1536 << 10, "8388607TiB": 8388607 << 40,
	} {
		got, err := parseBytes(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %d as %s, %v", text, got, got, err)
		}
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%s: unmarshalled as %d, %v", text, b, err)
		}
	}
	for text, meant := range map[string]string{"1mb": "1MiB", "2M": "2MiB", "3Mi": "3MiB", "4mib": "4MiB", "5kB": "5KiB", "6g": "6GiB", "7TB": "7TiB", "8b": "8B"} {
		if _, err := parseBytes(text); err == nil || !strings.HasSuffix(err.Error(), "did you mean "+meant+"?") {
			t.Errorf("%s: %v, want %s proposed", text, err, meant)
		}
	}
	for _, text := range []string{"8388608TiB", "99999999999999999999B", "-1B", "B", "1 B", "1BB", "0x1B", "1e3B"} {
		var b Bytes = 5
		if err := b.UnmarshalText([]byte(text)); err == nil || b != 5 {
			t.Errorf("%s was taken for %d", text, b)
		}
	}
}

func TestDurationsAreWrittenShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m", 90 * time.Second: "1m30s",
		200 * time.Millisecond: "200ms", 10 * time.Second: "10s", 10 * time.Minute: "10m", 20 * time.Hour: "20h", time.Hour + time.Second: "1h0m1s",
		24 * time.Hour: "24h", 48 * time.Hour: "2d", 49 * time.Hour: "49h", 400 * 24 * time.Hour: "400d",
	} {
		got := formatDuration(d)
		if back, err := parseDuration(got); got != want || err != nil || back != d {
			t.Errorf("%v is written %s and read %v, %v; want %s", d, got, back, err, want)
		}
	}
}

func FuzzBytes(f *testing.F) {
	for _, seed := range []string{"", "0B", "10MiB", "10MB", "16kb", "1.5MiB", "99999999999999999999B", "MiB", "5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := parseBytes(text)
		if err != nil {
			if b != 0 || err.Error() == "" {
				t.Errorf("%q: %d, %v", text, b, err)
			}
			return
		}
		if again, err := parseBytes(b.String()); b < 0 || err != nil || again != b {
			t.Errorf("%q is %d, written %s, read as %d, %v", text, b, b, again, err)
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"", "0", "1s", "1h30m", "-5s", "1d", "1d-30h", "40d12h", "99999999d", "1.5h", "9999999h", "1 s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDuration(text)
		if err != nil {
			return
		}
		if again, err := parseDuration(formatDuration(d)); d < 0 || err != nil || again != d {
			t.Errorf("%q is %v, written %s, read as %v, %v", text, d, formatDuration(d), again, err)
		}
	})
}
