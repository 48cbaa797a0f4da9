package counter

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/counter/texts"
)

func TestNamesInOnePieceAreLikeThoseOfTheirOwn(t *testing.T) {
	var in texts.Block
	long := strings.Repeat("x", 1<<16)
	for _, n := range []Naming{{}, {Tagged: true}} {
		within := Naming{Tagged: n.Tagged, In: &in}
		for _, c := range [][2]string{
			{n.Quota("", "key"), within.Quota("", "key")},
			{n.Quota("api", "key"), within.Quota("api", "key")},
			{n.Rate("", "key", ""), within.Rate("", "key", "")},
			{n.Rate("api", "key", "17"), within.Rate("api", "key", "17")},
			{n.Rate("api", long, "17"), within.Rate("api", long, "17")},
			{n.APIRate("api"), within.APIRate("api")},
		} {
			if c[0] != c[1] || c[0] == "" {
				t.Errorf("%q, and in one piece %q", c[0], c[1])
			}
		}
	}
}
