package validate

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

const (
	maxDetail  = 1000 // bytes of a message about several fields or fragments
	maxPlaces  = 40   // of one problem
	abandoned  = "Too many validation errors, error limit reached. Validation aborted."
	manyErrors = 64 // up to how many entries are kept for the next document
)

// A problem is something wrong, with offsets of the places it is about.
type problem struct {
	message string
	places  []uint32
}

// report notes a problem. Once there are too many, checking ends as soon as it
// can.
func (v *Validator) report(message string, places ...uint32) {
	if v.over {
		return
	}
	if len(v.problems) >= v.o.MaxErrors {
		v.over = true
		v.problems = append(v.problems, problem{message: abandoned})
		return
	}
	v.problems = append(v.problems, problem{message: message, places: places[:min(len(places), maxPlaces)]})
}

// either returns hidden if names of the schema must not appear, else open.
func (v *Validator) either(hidden, open string) string {
	if v.o.Hide {
		return hidden
	}
	return open
}

// errors returns the problems as clients read them.
func (v *Validator) errors() []*syntax.Error {
	if len(v.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(v.problems, func(a, b problem) int {
		if len(a.places) == 0 || len(b.places) == 0 {
			return cmp.Compare(len(b.places), len(a.places)) // those without a place last
		}
		return cmp.Compare(a.places[0], b.places[0])
	})
	errs := make([]*syntax.Error, len(v.problems))
	var all []uint32
	for _, p := range v.problems {
		all = append(all, p.places...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	found := locate(nil, v.doc.Source, all)
	for i, p := range v.problems {
		errs[i] = &syntax.Error{Message: p.message}
		for _, at := range p.places {
			n, _ := slices.BinarySearch(all, at)
			errs[i].Locations = append(errs[i].Locations, found[n])
		}
	}
	clear(v.problems)
	if cap(v.problems) > manyErrors {
		v.problems = nil
	}
	return errs
}

// locate appends the places of offsets, which are in order, in one pass over the
// text.
func locate(found []syntax.Location, source []byte, offsets []uint32) []syntax.Location {
	line, column, at := 1, 1, 0
	for _, offset := range offsets {
		for ; at < min(int(offset), len(source)); at++ {
			c := source[at]
			column += units(c)
			if c == '\n' || c == '\r' && (at+1 == len(source) || source[at+1] != '\n') {
				line, column = line+1, 1
			}
		}
		found = append(found, syntax.Location{Line: line, Column: column})
	}
	return found
}

// units returns how many UTF-16 code units the character has that a byte begins.
func units(c byte) int {
	switch {
	case c >= 0xF0:
		return 2
	case utf8.RuneStart(c):
		return 1
	default:
		return 0
	}
}

// text returns a piece of the document as messages repeat it.
func (v *Validator) text(at syntax.Span) string { return echo(v.doc, at) }

// quoted returns a name of the document as messages have it.
func (v *Validator) quoted(at syntax.Span) string { return `"` + v.text(at) + `"` }

// typeQuoted and refQuoted return names of the schema as messages have them.
func (v *Validator) typeQuoted(t schema.TypeID) string { return `"` + v.s.Types[t].Name + `"` }
func (v *Validator) refQuoted(r schema.TypeRef) string { return `"` + v.s.RefString(r) + `"` }
