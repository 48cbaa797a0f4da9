package didyoumean

import (
	"strings"
	"testing"
)

func TestTheNearestIsFound(t *testing.T) {
	names := []string{"listen", "read_timeout", "write_timeout", "rate", "max_url"}
	for name, want := range map[string]string{
		"listne": "listen", "LISTEN": "listen", "read-timeout": "read_timeout", "readtimeout": "read_timeout", "wirte_timeout": "write_timeout",
		"rat": "rate", "tare": "", "zzz": "", "": "", "x": "", "max_ulr": "max_url", strings.Repeat("x", 5000): "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("nearest to %.20q is %q, want %q", name, got, want)
		}
	}
}
