package compose_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

// problems returns the problems of a composition as they are compared.
func problems(found []compose.Problem) []string {
	texts := make([]string, len(found))
	for i := range found {
		texts[i] = string(found[i].Code) + ": " + found[i].String()
	}
	return texts
}

func TestCompose(t *testing.T) {
	for _, c := range compositions {
		t.Run(c.name, func(t *testing.T) {
			made, found := compose.Compose(c.named())
			if got := problems(found); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if (made == nil) != (len(found) > 0) {
				t.Fatalf("%d problems and the supergraph %v", len(found), made)
			}
			if made != nil {
				valid(t, made)
			}
		})
	}
}

// valid holds that all schemas of a composition are valid.
func valid(t *testing.T, made *compose.Supergraph) {
	t.Helper()
	texts := []string{made.SDL}
	for _, s := range made.Subgraphs {
		texts = append(texts, s.SDL)
	}
	for _, text := range texts {
		if _, err := sdl.Parse(text); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
	}
}

// The result and the problems do not depend on the order of the subgraphs.
func TestComposeInAnyOrder(t *testing.T) {
	for _, c := range compositions {
		subgraphs := c.named()
		made, found := compose.Compose(subgraphs)
		for range 10 {
			rand.Shuffle(len(subgraphs), func(i, j int) { subgraphs[i], subgraphs[j] = subgraphs[j], subgraphs[i] })
			other, otherFound := compose.Compose(subgraphs)
			if !slices.Equal(problems(otherFound), problems(found)) {
				t.Fatalf("%s: %q in one order, %q in another", c.name, problems(found), problems(otherFound))
			}
			if made != nil && (other.SDL != made.SDL || describe(other) != describe(made)) {
				t.Fatalf("%s:\n%s\n%s\nin one order, in another\n%s\n%s", c.name, made.SDL, describe(made), other.SDL, describe(other))
			}
		}
	}
}
