package gateway_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// handshakes notes what it is told, and what was in force then.
type handshakes struct {
	gateway *gateway.Gateway
	told    []string
}

func (h *handshakes) note(what string, apis []*pipeline.API) {
	for _, api := range apis {
		inForce := h.gateway.Current() != nil && h.gateway.Current().API(api.Definition.ID) == api.Definition
		h.told = append(h.told, fmt.Sprintf("%s %s, in force: %t", api.Definition.ID, what, inForce))
	}
}

func (h *handshakes) Came(apis []*pipeline.API) { h.note("came", apis) }
func (h *handshakes) Gone(apis []*pipeline.API) { h.note("gone", apis) }

func TestHandshakesKnowOfAPIsAsLongAsTheseAreInForce(t *testing.T) {
	h := &handshakes{}
	g, _ := serve(t, func(d *gateway.Deps) { d.Handshakes = h })
	h.gateway = g
	one, changed, two := keyless("one", "/one/", "http://a"), keyless("one", "/one/", "http://b"), keyless("two", "/two/", "http://a")
	for _, step := range []struct {
		name string
		do   func() map[string]error
		want []string
	}{
		{"one comes", func() map[string]error { return g.Apply(bundle("1", one)) }, []string{"one came, in force: false"}},
		{"nothing changes", func() map[string]error { return g.Apply(bundle("2", one)) }, nil},
		{"one changes", func() map[string]error { return g.Apply(bundle("3", changed)) }, []string{"one came, in force: false", "one gone, in force: false"}},
		{"two for one", func() map[string]error { return g.Apply(bundle("4", two)) }, []string{"two came, in force: false", "one gone, in force: false"}},
	} {
		h.told = nil
		if failed := step.do(); len(failed) > 0 {
			t.Errorf("%s: %v", step.name, failed)
		}
		if !slices.Equal(h.told, step.want) {
			t.Errorf("%s: told %q, want %q", step.name, h.told, step.want)
		}
	}
}
