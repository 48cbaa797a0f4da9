package sdl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

func TestPlacesAreThoseOfTheDocumentWhateverEndsItsLines(t *testing.T) {
	doc := &syntax.Document{Source: []byte("a\nbé\r\n\r\n😀c d\re\r\rf\n\n  g\uFEFF h")}
	r := report{doc: doc}
	for at := range string(doc.Source) {
		if doc.Source[at] != '\n' { // which may end a line together with what is before it
			r.addf(uint32(at), []uint32{uint32(len(doc.Source))}, "here")
		}
	}
	found := r.problems()
	if len(found) != len(r.faults) {
		t.Fatalf("%d problems of %d", len(found), len(r.faults))
	}
	for i, p := range found {
		if want := doc.Location(r.faults[i].at); p.Location != want {
			t.Errorf("byte %d is at %v, not %v", r.faults[i].at, p.Location, want)
		}
		if want := doc.Location(uint32(len(doc.Source))); p.Related[0] != want {
			t.Errorf("the end is at %v, not %v", p.Related[0], want)
		}
	}
}

func TestOnlySoManyProblemsAreTold(t *testing.T) {
	r := report{doc: &syntax.Document{Source: []byte(strings.Repeat(" ", 3000))}}
	for at := range uint32(3000) {
		r.addf(at, nil, "%s", strings.Repeat("é", 1000))
	}
	found := r.problems()
	if last := found[len(found)-1]; len(found) != maxProblems+1 || last.String() != fmt.Sprintf("1:3001: there are more problems than the %d that are listed", maxProblems) {
		t.Errorf("%d problems, the last one %s", len(found), last)
	}
	if m := found[0].Message; len(m) > maxMessage+len("…") || m != strings.ToValidUTF8(m, "") {
		t.Errorf("a message of %d bytes", len(m))
	}
}

func TestTheSameProblemIsToldOnce(t *testing.T) {
	r := report{doc: &syntax.Document{Source: []byte("abc")}}
	for range 3 {
		r.addf(1, nil, "this")
		r.addf(1, nil, "that")
		r.addf(0, nil, "this")
	}
	var all []string
	for _, p := range r.problems() {
		all = append(all, p.String())
	}
	if got := strings.Join(all, ", "); got != "1:1: this, 1:2: that, 1:2: this" {
		t.Errorf("told are %s", got)
	}
}
