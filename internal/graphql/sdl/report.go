package sdl

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// Bounds on what is reported. A schema of 4 MiB can have a million faults, and
// names as long as itself.
const (
	maxProblems = 1000
	maxMessage  = 800 // bytes
	maxText     = 200 // bytes of a name or value in a message
	maxRelated  = 20
)

// A fault is a problem whose places are offsets yet.
type fault struct {
	message string
	at      uint32
	related []uint32

	harmless bool
}

// report gathers faults.
type report struct {
	doc    *syntax.Document
	faults []fault
}

// full reports whether no more problems are recorded, so that checks can end.
func (r *report) full() bool { return len(r.faults) >= maxProblems }

// addf notes what is wrong at an offset, and returns the note as long as more are
// taken, to be added to at once.
func (r *report) addf(at uint32, related []uint32, format string, args ...any) *fault {
	if r.full() {
		return &fault{}
	}
	message := shorten(fmt.Sprintf(format, args...), maxMessage)
	r.faults = append(r.faults, fault{message: message, at: at, related: related[:min(len(related), maxRelated)]})
	return &r.faults[len(r.faults)-1]
}

// clip returns a name or value for a message, short enough that others have room
// beside it.
func clip(text string) string { return shorten(text, maxText) }

// shorten returns a text that is no longer than most bytes, and the mark that
// something is left out.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// problems returns what was found, sorted by position, each thing once.
func (r *report) problems() []*Problem {
	slices.SortStableFunc(r.faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.message, b.message))
	})
	full := r.full()
	r.faults = slices.CompactFunc(r.faults, func(a, b fault) bool { return a.at == b.at && a.message == b.message })
	places := r.places()
	problems := make([]*Problem, len(r.faults), len(r.faults)+1)
	for i, f := range r.faults {
		p := &Problem{Message: f.message, Location: places[f.at], Harmless: f.harmless}
		for _, at := range f.related {
			p.Related = append(p.Related, places[at])
		}
		problems[i] = p
	}
	if full {
		end := uint32(len(r.doc.Source))
		problems = append(problems, &Problem{
			Message:  fmt.Sprintf("there are more problems than the %d that are listed", len(problems)),
			Location: r.doc.Location(end),
		})
	}
	return problems
}

// places returns the location of every offset that faults name. It goes through
// the source once, where a look-up for each would go through it as often.
func (r *report) places() map[uint32]syntax.Location {
	var offsets []uint32
	for _, f := range r.faults {
		offsets = append(append(offsets, f.at), f.related...)
	}
	slices.Sort(offsets)
	places := make(map[uint32]syntax.Location, len(offsets))
	part := syntax.Document{Source: r.doc.Source}
	line, column, from := 1, 1, uint32(0)
	for _, at := range slices.Compact(offsets) {
		part.Source = r.doc.Source[from:at]
		step := part.Location(at - from)
		if step.Line == 1 {
			step.Column += column - 1
		}
		line, column, from = line+step.Line-1, step.Column, at
		places[at] = syntax.Location{Line: line, Column: column}
	}
	return places
}
