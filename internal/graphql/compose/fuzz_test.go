package compose_test

import (
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/compose"
)

// Whatever is composed has valid schemas, and does not depend on the order.
func FuzzCompose(f *testing.F) {
	for _, c := range compositions {
		texts := [3]string{}
		copy(texts[:], c.subgraphs)
		f.Add(texts[0], texts[1], texts[2])
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		subgraphs := []compose.Subgraph{{Name: "a", SDL: a}}
		for name, sdl := range map[string]string{"b": b, "c": c} {
			if sdl != "" {
				subgraphs = append(subgraphs, compose.Subgraph{Name: name, SDL: sdl})
			}
		}
		made, found := compose.Compose(subgraphs)
		subgraphs[0], subgraphs[len(subgraphs)-1] = subgraphs[len(subgraphs)-1], subgraphs[0]
		other, otherFound := compose.Compose(subgraphs)
		if len(found) != len(otherFound) || (made == nil) != (len(found) > 0) {
			t.Fatalf("%q and %q", problems(found), problems(otherFound))
		}
		if made == nil {
			return
		}
		if made.SDL != other.SDL || describe(made) != describe(other) {
			t.Fatalf("%s\nand\n%s", made.SDL, other.SDL)
		}
		valid(t, made)
		alone, found := compose.Compose([]compose.Subgraph{{Name: "one", SDL: made.SDL}})
		if alone == nil || alone.SDL != made.SDL {
			t.Fatalf("composed with itself: %q\n%s", problems(found), made.SDL)
		}
	})
}
