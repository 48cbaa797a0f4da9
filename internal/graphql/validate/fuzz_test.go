package validate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// judge parses and checks a document, and gathers facts about each of its
// operations if it is valid. It returns the verdict in words.
func judge(s *schema.Schema, source []byte) string {
	var (
		doc syntax.Document
		v   Validator
	)
	if err := syntax.Parse(&doc, source, limits); err != nil {
		return err.Error()
	}
	if errs := v.Check(s, &doc, Options{Suggestions: true}); len(errs) > 0 {
		return fmt.Sprintf("%d errors: %s", len(errs), errs[0].Message)
	}
	for i := range doc.Operations {
		f, err := v.Facts(s, &doc, i, Options{})
		if err != nil {
			return err.Error()
		}
		f.Cost.At(nil)
	}
	return "valid"
}

func FuzzAnyDocumentIsJudged(f *testing.F) {
	s := loaded(f, petSchema)
	r := rand.New(rand.NewPCG(1, 2))
	g := newOperations(r, s)
	for range 50 {
		source := g.document()
		f.Add([]byte(source))
		f.Add([]byte(g.mutant(source)))
	}
	var v, hidden Validator
	f.Fuzz(func(t *testing.T, source []byte) {
		doc := &syntax.Document{}
		if syntax.Parse(doc, source, limits) != nil {
			return
		}
		errs := v.Check(s, doc, Options{})
		if len(errs) > DefaultMaxErrors+1 {
			t.Errorf("%d errors", len(errs))
		}
		for _, err := range errs {
			if !utf8.ValidString(err.Message) || len(err.Message) > 8*1024 {
				t.Errorf("message %q", err.Message)
			}
		}
		if again := hidden.Check(s, doc, Options{Hide: true}); (len(again) == 0) != (len(errs) == 0) {
			t.Errorf("%d errors, but %d when names are hidden", len(errs), len(again))
		}
		for i := range doc.Operations {
			facts, err := v.Facts(s, doc, i, Options{})
			if err == nil && len(errs) == 0 && facts.Size() <= 0 {
				t.Error("facts of no size")
			}
		}
	})
}

// usual is an operation of 200 bytes.
const usual = `query Owner($id: ID!, $n: Int = 3) { pet(id: $id) { id name owner { name pets(first: $n) { id name ...Barks } } } me { name } }
fragment Barks on Dog { barks size friends(first: 10) { count } }`

// BenchmarkOperation tells the processor's time too, which other work on the
// machine does not add to.
func BenchmarkOperation(b *testing.B) {
	s := loaded(b, petSchema)
	doc := parsed(b, usual)
	var v Validator
	f, err := v.Facts(s, doc, 0, Options{})
	if err != nil {
		b.Fatal(err)
	}
	sizes := []int64{-1, 5}
	for _, step := range []struct {
		name string
		do   func() bool
	}{
		{"parse", func() bool { return syntax.Parse(doc, []byte(usual), limits) == nil }},
		{"check", func() bool { return v.Check(s, doc, Options{}) == nil }},
		{"facts", func() bool { _, err := v.Facts(s, doc, 0, Options{}); return err == nil }},
		{"cost", func() bool { return f.Cost.At(sizes) > 0 }},
	} {
		b.Run(step.name, func(b *testing.B) {
			b.ReportAllocs()
			began := cpu()
			for b.Loop() {
				if !step.do() {
					b.Fatal("refused")
				}
			}
			b.ReportMetric(float64(cpu()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}
