package schema

import "strings"

// textChunk is how many bytes of names share one allocation.
const textChunk = 32 << 10

// texts keeps each distinct name of a schema once, in a few large allocations:
// a schema of ten thousand names would otherwise be as many small objects that
// the garbage collector has to look at.
type texts struct {
	chunk *strings.Builder
	known map[string]string
}

func newTexts() *texts { return &texts{chunk: &strings.Builder{}, known: map[string]string{}} }

// keep returns a text equal to s that holds on to nothing but its chunk.
func (t *texts) keep(s string) string {
	if s == "" {
		return ""
	}
	if kept, ok := t.known[s]; ok {
		return kept
	}
	if t.chunk.Cap()-t.chunk.Len() < len(s) {
		t.chunk = &strings.Builder{}
		t.chunk.Grow(max(textChunk, len(s)))
	}
	t.chunk.WriteString(s) // within the capacity, so that earlier texts stay where they are
	kept := t.chunk.String()
	kept = kept[len(kept)-len(s):]
	t.known[kept] = kept
	return kept
}
