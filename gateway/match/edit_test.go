package match

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// places is a random configuration: what listens where.
type places struct {
	random  *rand.Rand
	entries []Entry[int]
	last    int
}

func (p *places) pick(from ...string) string { return from[p.random.IntN(len(from))] }

func (p *places) place() Entry[int] {
	var listen strings.Builder
	for j := range p.random.IntN(4) {
		parameter := strings.Replace(p.pick("{p}", "{p:a+}", "{p:[ab]+}"), "p", fmt.Sprint("p", j), 1)
		listen.WriteString("/" + p.pick("a", "b", "ab", fmt.Sprint("n", p.random.IntN(200)), parameter))
	}
	p.last++
	return Entry[int]{Domain: p.pick("", "", "", "one", "TWO"), ListenPath: listen.String() + "/", Value: p.last}
}

// change makes a random change to the configuration and, by edit, to a tree.
func (p *places) change(t *testing.T, edit *Edit[int]) {
	entry := p.place()
	scratch, _ := New(append(p.entries[:len(p.entries):len(p.entries)], entry))
	at := -1 // of the entry that listens there already
	if scratch.Len() == len(p.entries) {
		for i := range p.entries {
			one, _ := New([]Entry[int]{p.entries[i], entry})
			if one.Len() == 1 {
				at = i
			}
		}
	}
	switch err := edit.Add(entry); {
	case at < 0 && err != nil, at >= 0 && err == nil:
		t.Fatalf("adding %v beside %v: %v", entry, p.entries, err)
	case at < 0:
		p.entries = append(p.entries, entry)
		return
	}
	if p.random.IntN(2) == 0 {
		edit.Remove(entry.Domain, entry.ListenPath)
		p.entries = append(p.entries[:at:at], p.entries[at+1:]...)
		return
	}
	if err := edit.Set(entry); err != nil {
		t.Fatalf("setting %v: %v", entry, err)
	}
	p.entries = append(p.entries[:at:at], p.entries[at+1:]...)
	p.entries = append(p.entries, entry)
}

// agree compares where paths lead in two trees.
func (p *places) agree(t *testing.T, got, want *Tree[int]) {
	t.Helper()
	if got.Len() != want.Len() || got.domains.Len() != want.domains.Len() || got.expressions.Len() != want.expressions.Len() {
		t.Fatalf("%d entries, %d domains, %d expressions; want %d, %d, %d", got.Len(), got.domains.Len(),
			got.expressions.Len(), want.Len(), want.domains.Len(), want.expressions.Len())
	}
	for range 50 {
		host, path := p.pick("one", "two:80", "three"), ""
		for range 1 + p.random.IntN(4) {
			path += "/" + p.pick("a", "b", "ab", "aab", "x", fmt.Sprint("n", p.random.IntN(200)))
		}
		a, n, ok := got.Find([]byte(host), []byte(path), nil)
		b, m, there := want.Find([]byte(host), []byte(path), nil)
		if a != b || n != m || ok != there {
			t.Fatalf("%s%s goes to %d (%d segments), want %d (%d) of %v", host, path, a, n, b, m, p.entries)
		}
	}
}

func TestEditedTreesFindWhatNewOnesDo(t *testing.T) {
	for round := range uint64(20) {
		p := &places{random: rand.New(rand.NewPCG(round, 1))}
		var tree *Tree[int]
		for range 40 {
			edit, before := tree.Edit(), tree
			was, _ := New(p.entries)
			for range 1 + p.random.IntN(20) {
				p.change(t, edit)
			}
			tree = done(edit)
			scratch, problems := New(p.entries)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			p.agree(t, tree, scratch)
			if before != nil {
				p.agree(t, before, was)
			}
		}
		edit := tree.Edit()
		for _, entry := range p.entries {
			edit.Remove(entry.Domain, entry.ListenPath)
		}
		p.agree(t, done(edit), none())
	}
}

// done ends an edit without a rest.
func done[T any](edit *Edit[T]) *Tree[T] {
	tree, _ := edit.Done(func() error { return nil })
	return tree
}

// none is a tree without entries.
func none() *Tree[int] {
	tree, _ := New[int](nil)
	return tree
}

func TestRemovingWhatIsNotThereChangesNothing(t *testing.T) {
	tree := build(t, at("/a", "/b/{x:c+}")...)
	edit := tree.Edit()
	for _, path := range []string{"/a/b", "/", "/b", "/b/{x}", "no path", "/b/{y:d}"} {
		edit.Remove("", path)
		edit.Remove("a.example.com", path)
		edit.Remove("no domain at all", path)
	}
	if got := done(edit); got.Len() != 2 || got.expressions.Len() != 1 {
		t.Errorf("%d entries, %d expressions", got.Len(), got.expressions.Len())
	}
}

// BenchmarkEdit takes one of a hundred thousand entries out and puts it in again.
func BenchmarkEdit(b *testing.B) {
	entries := make([]Entry[int], 100_000)
	for i := range entries {
		entries[i] = Entry[int]{ListenPath: fmt.Sprintf("/api-%d/", i), Value: i}
	}
	tree, _ := New(entries)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 7919) % len(entries)
		edit := tree.Edit()
		edit.Remove("", entries[i].ListenPath)
		if err := edit.Add(entries[i]); err != nil {
			b.Fatal(err)
		}
		tree = done(edit)
	}
}
