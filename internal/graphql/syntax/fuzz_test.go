package syntax_test

import (
	"maps"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

func FuzzParse(f *testing.F) {
	for i, source := range corpus {
		f.Add([]byte(source), corpus[len(corpus)-1-i], uint16(0), uint8(0))
		f.Add([]byte(source), source, uint16(len(source)/4), uint8(3))
	}
	f.Fuzz(func(t *testing.T, source []byte, before string, tokens uint16, depth uint8) {
		limits := syntax.Limits{Tokens: int(tokens), Depth: int(depth), ValueDepth: int(depth), Aliases: int(depth), Literals: int(tokens)}
		check(t, syntax.Parse, source, before, limits)
	})
}

func FuzzParseSchema(f *testing.F) {
	for i, source := range corpus {
		f.Add([]byte(source), corpus[len(corpus)-1-i])
	}
	f.Fuzz(func(t *testing.T, source []byte, before string) {
		check(t, syntax.ParseSchema, source, before, syntax.Limits{})
	})
}

// check parses source, fresh and into a document that had other content before,
// and walks what comes of it.
func check(t *testing.T, parse func(*syntax.Document, []byte, syntax.Limits) error, source []byte, before string, limits syntax.Limits) {
	t.Helper()
	var fresh, used syntax.Document
	_ = parse(&used, []byte(before), syntax.Limits{}) // whatever that is
	errFresh, errUsed := parse(&fresh, source, limits), parse(&used, source, limits)
	bounded(t, &fresh)
	if a, b := sizes(&fresh), sizes(&used); !maps.Equal(a, b) {
		t.Errorf("fresh has %v, used %v", a, b)
	}
	if errFresh != nil {
		if errUsed == nil || errFresh.Error() != errUsed.Error() {
			t.Fatalf("fresh: %v, used: %v", errFresh, errUsed)
		}
		return
	}
	if errUsed != nil {
		t.Fatalf("fresh: accepted, used: %v", errUsed)
	}
	// A span, a range or an index that is wrong makes dump panic.
	first, second := dump(&fresh), dump(&used)
	if first != second || fresh.Tokens != used.Tokens {
		t.Fatalf("fresh:\n%s\nused:\n%s", first, second)
	}
	for i := range fresh.Values {
		v := &fresh.Values[i]
		if long, short := fresh.AppendString(nil, v), fresh.StringValue(v); string(long) != short {
			t.Fatalf("value %q is %q and %q", fresh.Text(v.Text), long, short)
		}
	}
}

// sizes returns how many elements a document's tables have.
func sizes(d *syntax.Document) map[string]int {
	return map[string]int{
		"definitions": len(d.Definitions), "operations": len(d.Operations), "fragments": len(d.Fragments), "variables": len(d.Variables),
		"selections": len(d.Selections), "arguments": len(d.Arguments), "directives": len(d.Directives), "values": len(d.Values),
		"types": len(d.Types), "type definitions": len(d.TypeDefs), "fields": len(d.FieldDefs), "inputs": len(d.InputDefs),
		"enum values": len(d.EnumValues), "root types": len(d.RootTypes), "names": len(d.Names),
	}
}

// bounded holds that no table has more elements than the document has tokens.
func bounded(t *testing.T, d *syntax.Document) {
	t.Helper()
	for what, n := range sizes(d) {
		if n > d.Tokens+1 {
			t.Errorf("%d %s of %d tokens", n, what, d.Tokens)
		}
	}
	if d.Tokens > len(d.Source) {
		t.Errorf("%d tokens in %d bytes", d.Tokens, len(d.Source))
	}
}
