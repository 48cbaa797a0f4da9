// Package progress shows how far long work is.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// after is how long work takes before anything is shown of it.
const after = 500 * time.Millisecond

// cells is the width of a bar.
const cells = 30

// A Bar shows how far work is: one line that is written over for a person at a
// terminal, a line for each tenth otherwise. It is used by one goroutine.
type Bar struct {
	to       io.Writer
	terminal bool
	what     string
	now      func() time.Time
	started  time.Time
	shown    int // tenths that lines were written for, or percent of a bar; -1: nothing
}

// New returns a bar of work that begins now.
func New(to io.Writer, terminal bool, what string, now func() time.Time) *Bar {
	return &Bar{to: to, terminal: terminal, what: what, now: now, started: now(), shown: -1}
}

// Set says that done of total parts are done. Nothing is shown of work that takes
// less than half a second.
func (b *Bar) Set(done, total int) {
	if total <= 0 || b.now().Sub(b.started) < after {
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
	full := percent * cells / 100
	b.write(fmt.Sprintf("\r%s [%s%s] %3d %%", b.what, strings.Repeat("#", full), strings.Repeat(" ", cells-full), percent))
}

// End removes what a terminal shows.
func (b *Bar) End() {
	if b.terminal && b.shown >= 0 {
		b.write("\r\x1b[K")
	}
}

// write shows text: what cannot be shown is not worth an error of the work.
func (b *Bar) write(text string) { _, _ = io.WriteString(b.to, text) }

// Wait tells how long work takes whose parts cannot be counted, until end is
// called: over and over for a person at a terminal, every ten seconds otherwise.
func Wait(to io.Writer, terminal bool, what string) (end func()) {
	w := waiting{to: to, terminal: terminal, what: what, every: 10 * time.Second}
	if terminal {
		w.every = after
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

type waiting struct {
	to       io.Writer
	terminal bool
	what     string
	every    time.Duration
}

func (w *waiting) run(stop <-chan struct{}) {
	began, shown := time.Now(), false
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			if shown && w.terminal {
				_, _ = io.WriteString(w.to, "\r\x1b[K") // what cannot be shown is not worth an error of the work
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
