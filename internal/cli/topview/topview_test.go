package topview

import (
	"math"
	"strings"
	"testing"
	"time"
)

const before = `# HELP sluice_requests_total x
sluice_requests_total{api="orders",code="2xx",method="GET"} 10
sluice_build_info{version="1"} 1
go_goroutines 7
`

const after = `sluice_requests_total{api="orders",code="2xx",method="GET"} 30
sluice_requests_total{api="orders",code="5xx",method="GET"} 2
sluice_requests_total{api="a \"b\" {c}",code="4xx",method="GET"} 4 1700000000
sluice_rejections_total{api="orders",reason="quota"} 6
sluice_rejections_total{api="a \"b\" {c}",reason="rate"} 1
sluice_request_seconds_bucket{api="orders",le="0.001"} 50
sluice_request_seconds_bucket{api="orders",le="0.002"} 100
sluice_request_seconds_bucket{api="orders",le="+Inf"} 100
sluice_gateway_seconds_bucket{api="orders",le="+Inf"} 100
`

func parse(t *testing.T, text string, at int64) *Sample {
	t.Helper()
	s, err := Parse([]byte(text), time.Unix(at, 0))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRatesAreThoseBetweenTwoMoments(t *testing.T) {
	table := Between(parse(t, before, 100), parse(t, after, 102), "")
	if table.All.Requests != 13 || table.All.Failed != 1 || table.All.Refused != 3.5 || len(table.APIs) != 2 {
		t.Errorf("%+v", table)
	}
	orders := table.APIs[0]
	if orders.API != "orders" || orders.Requests != 11 || math.Abs(*orders.P50-1) > 0.001 || math.Abs(*orders.P99-1.98) > 0.001 || orders.Upstream != nil || *orders.Own != 0 {
		t.Errorf("%+v", orders)
	}
	if len(table.Reasons) != 2 || table.Reasons[0] != (Reason{"quota", 3}) {
		t.Errorf("%+v", table.Reasons)
	}
	text := table.Text(1)
	for _, want := range []string{"13.0", "orders", "and 1 more", "3.0  quota", "(all)"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if only := Between(parse(t, before, 100), parse(t, after, 102), `a "b" {c}`); len(only.APIs) != 1 || only.All.Requests != 2 {
		t.Errorf("%+v", only)
	}
	// After a restart the whole sample counts.
	if again := Between(parse(t, after, 100), parse(t, before, 101), ""); again.All.Requests != 10 {
		t.Errorf("%+v", again)
	}
}

func TestWhatIsNoMetricIsRefusedWithItsLine(t *testing.T) {
	for _, text := range []string{"sluice_x", "sluice_x{api=5} 1", `sluice_x{api="a} 1`, "\nsluice_x{api=\"a\"} many", `sluice_x{api="a"}`} {
		if _, err := Parse([]byte(text), time.Time{}); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(before)
	f.Add(after)
	f.Add(`sluice_request_seconds_bucket{api="a",le="NaN"} NaN`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse([]byte(text), time.Unix(2, 0))
		if err != nil {
			return
		}
		if Between(&Sample{At: time.Unix(1, 0)}, s, "").Text(5) == "" {
			t.Error("no table")
		}
	})
}
