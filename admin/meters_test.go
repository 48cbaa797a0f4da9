package admin

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// gather returns the registered metrics by name, as text with their labels and
// values.
func gather(t testing.TB, s *Server) map[string]string {
	t.Helper()
	families, err := s.deps.Metrics.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			line := ""
			for _, l := range m.GetLabel() {
				line += fmt.Sprintf("%s:%s ", l.GetName(), l.GetValue())
			}
			texts[f.GetName()] += line + fmt.Sprintln(m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	return texts
}

// waiting returns how many gateways wait.
func waiting(t testing.TB, s *Server) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(gather(t, s)["sluice_admin_bundle_waiting"], &n); err != nil {
		t.Fatal(err)
	}
	return n
}
