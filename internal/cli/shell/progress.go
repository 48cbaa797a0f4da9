package shell

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// showAfter is the delay before progress is shown.
const showAfter = 500 * time.Millisecond

// barWidth is the width of a bar.
const barWidth = 30

// A Bar shows progress: one line that is overwritten on a terminal, otherwise a line for
// each tenth. It is used by one goroutine.
type Bar struct {
	to       io.Writer
	terminal bool
	what     string
	now      func() time.Time
	started  time.Time
	shown    int // last tenth printed, or percent of the bar; -1: none
}

// NewBar returns a bar for work that begins now.
func NewBar(to io.Writer, terminal bool, what string, now func() time.Time) *Bar {
	return &Bar{to: to, terminal: terminal, what: what, now: now, started: now(), shown: -1}
}

// Set updates the bar to done of total parts. Work of less than half a second is not
// shown.
func (b *Bar) Set(done, total int) {
	if total <= 0 || b.now().Sub(b.started) < showAfter {
		return
	}
	percent := min(100, done*100/total)
	if !b.terminal {
		if tenths := percent / 10; tenths > b.shown {
			b.shown = tenths
			b.write(fmt.Sprintf("%s: %d %%\n", b.what, tenths*10))
		}
		return
	}
	if percent == b.shown {
		return
	}
	b.shown = percent
	full := percent * barWidth / 100
	b.write(fmt.Sprintf("\r%s [%s%s] %3d %%", b.what, strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), percent))
}

// End clears the bar on a terminal.
func (b *Bar) End() {
	if b.terminal && b.shown >= 0 {
		b.write("\r\x1b[K")
	}
}

// write ignores errors: progress is not worth failing the work.
func (b *Bar) write(text string) { _, _ = io.WriteString(b.to, text) }

// ShowElapsed prints the elapsed time of work without countable parts until end is
// called: continuously on a terminal, otherwise every ten seconds.
func ShowElapsed(to io.Writer, terminal bool, what string) (end func()) {
	w := elapsed{to: to, terminal: terminal, what: what, every: 10 * time.Second}
	if terminal {
		w.every = showAfter
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		w.run(stop)
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

type elapsed struct {
	to       io.Writer
	terminal bool
	what     string
	every    time.Duration
}

func (w *elapsed) run(stop <-chan struct{}) {
	began, shown := time.Now(), false
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			if shown && w.terminal {
				_, _ = io.WriteString(w.to, "\r\x1b[K") // progress is not worth failing the work
			}
			return
		case now := <-tick.C:
			line := fmt.Sprintf("%s: %s\n", w.what, now.Sub(began).Round(time.Second))
			if w.terminal {
				line = "\r" + line[:len(line)-1]
			}
			shown = true
			_, _ = io.WriteString(w.to, line)
		}
	}
}
