package progress

import (
	"strings"
	"testing"
	"time"
)

func TestLongWorkIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		took     time.Duration
		want     []string
		not      string
	}{
		"short work":         {false, 400 * time.Millisecond, nil, "%"},
		"without a terminal": {false, time.Second, []string{"keys: 20 %\n", "keys: 100 %\n"}, "25"},
		"at a terminal":      {true, time.Second, []string{"\rkeys [#######", "] 100 %", "\r\x1b[K"}, "\n"},
	} {
		var out strings.Builder
		now := time.Unix(1000, 0)
		bar := New(&out, c.terminal, "keys", func() time.Time { return now })
		now = now.Add(c.took)
		for _, done := range []int{1, 1, 4} {
			bar.Set(done, 4)
		}
		bar.Set(1, 0)
		bar.End()
		for _, text := range c.want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: lacks %q: %q", name, text, out.String())
			}
		}
		if strings.Contains(out.String(), c.not) {
			t.Errorf("%s: has %q: %q", name, c.not, out.String())
		}
	}
}
