package shell

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
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
		bar := NewBar(&out, c.terminal, "keys", func() time.Time { return now })
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

func TestWorkWithoutPartsTellsItsTime(t *testing.T) {
	for terminal, want := range map[bool]string{true: "\rapplying: 1s\rapplying: 1s\x1b[K", false: "applying: 10s\n"} {
		synctest.Test(t, func(t *testing.T) {
			var b bytes.Buffer
			end := ShowElapsed(&b, terminal, "applying")
			pause := 1200 * time.Millisecond
			if !terminal {
				pause = 15 * time.Second
			}
			time.Sleep(pause) // of the bubble's clock
			end()
			got := b.String()
			if terminal {
				got = strings.Replace(got, "\r\x1b[K", "\x1b[K", 1)
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
			end = ShowElapsed(&b, terminal, "at once")
			end()
			if strings.Contains(b.String(), "at once") {
				t.Errorf("%q", b.String())
			}
		})
	}
}
