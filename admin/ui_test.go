package admin

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/ui"
)

// The UI answers browsers at all paths but those that begin with one of its Prefixes.
func TestNoRouteLiesBelowAPage(t *testing.T) {
	b := start(t)
	for _, r := range b.server.routes() {
		first := strings.Split(r.Path, "/")[1]
		if !slices.Contains(ui.Prefixes, first) {
			t.Errorf("%s: %q has to be in ui.Prefixes, or browsers get a page in its place", r.Path, first)
		}
	}
}
