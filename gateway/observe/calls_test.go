package observe

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/internal/definition"
	contract "github.com/sluicegate/sluice/internal/usage"
)

// ofAPI is a finished call of a key to an API.
func ofAPI(ex *pipeline.Exchange, api *pipeline.API, key, name string) *pipeline.Exchange {
	ex.API, ex.KeyHash, ex.KeyName = api, key, name
	return ex
}

func sampleAPI(org string) *pipeline.API {
	return &pipeline.API{Definition: &definition.API{ID: "sample", OrgID: org}}
}

func TestCallsAreCountedForTheAdmin(t *testing.T) {
	counts := usage.NewCalls()
	o := New(Options{Log: quiet(), Calls: counts})
	m, api := o.NewMeter("sample"), sampleAPI("one")
	for range 3 {
		m.Done(ofAPI(exchange("GET", "/", 200), api, "0123456789abcdef", "0123456789ab"))
	}
	m.Done(ofAPI(rejected(pipeline.ReasonQuotaExceeded, 403, ""), api, "0123456789abcdef", "0123456789ab"))
	m.Done(ofAPI(exchange("GET", "/", 200), api, "my own key", "0123456789ab"))
	m.Done(ofAPI(rejected(pipeline.ReasonAuthMissing, 401, ""), api, "", ""))
	o.Unmatched().Done(rejected(pipeline.ReasonRouteNotFound, 404, ""))
	m.Done(ofAPI(exchange("GET", "/", 200), sampleAPI("two"), "", ""))

	got, latencies := make(map[contract.Row]int64), make(map[string]int64)
	counts.Take(func(r contract.Row) {
		if r.Minute%60 != 0 || r.Minute == 0 {
			t.Errorf("minute %d", r.Minute)
		}
		if r.Upstream != 300*r.Hits && r.Status == 200 {
			t.Errorf("%d us upstream of %d calls", r.Upstream, r.Hits)
		}
		hits := r.Hits
		r.Minute, r.Hits, r.Total, r.Upstream = 0, 0, 0, 0
		got[r] += hits
	}, func(l contract.Latency) {
		for _, n := range l.Counts {
			latencies[l.Org] += n
		}
	})
	want := map[contract.Row]int64{
		{Org: "one", API: "sample", Key: "0123456789abcdef", Status: 200}:                           3,
		{Org: "one", API: "sample", Key: "0123456789abcdef", Status: 403, Reason: "quota_exceeded"}: 1,
		{Org: "one", API: "sample", Key: contract.KeyOf("my own key", true), Status: 200}:           1,
		{Org: "one", API: "sample", Status: 401, Reason: "auth_missing"}:                            1,
		{Org: "two", API: "sample", Status: 200}:                                                    1,
	}
	for row, hits := range want {
		if got[row] != hits {
			t.Errorf("%+v: %d, want %d", row, got[row], hits)
		}
	}
	if len(got) != len(want) {
		t.Errorf("rows %v", got)
	}
	if all := latencies["one"] + latencies["two"]; all < 6 || all > 8 { // those of the move may count for both
		t.Errorf("latencies %v", latencies)
	}
}

func TestTheAdminAndMetricsCountTheSameCalls(t *testing.T) {
	counts := usage.NewCalls()
	o := New(Options{Log: quiet(), Calls: counts})
	m, api := o.NewMeter("sample"), sampleAPI("one")
	var calling sync.WaitGroup
	const callers, calls = 4, 3000
	for c := range callers {
		calling.Go(func() {
			random := rand.New(rand.NewPCG(9, uint64(c)))
			for range calls {
				ex := exchange("GET", "/", 200)
				if random.IntN(3) == 0 {
					ex = rejected(pipeline.ReasonRateLimit, 429, "")
				}
				m.Done(ofAPI(ex, api, string([]byte{'a' + byte(random.IntN(20))}), ""))
			}
		})
	}
	hits, slow := map[string]int64{}, int64(0)
	take := func() {
		counts.Take(func(r contract.Row) { hits[r.Reason] += r.Hits }, func(l contract.Latency) {
			for _, n := range l.Counts {
				slow += n
			}
		})
	}
	done := make(chan struct{})
	go func() { calling.Wait(); close(done) }()
	for running := true; running; take() {
		select {
		case <-done:
			running = false
		default:
		}
	}
	n := o.NewMeter("sample").(*meter).counts.Load().read()
	refused := int64(n.rejections[pipeline.ReasonRateLimit])
	if hits["rate_limit"] != refused || hits[""]+refused != callers*calls || slow != callers*calls || refused == 0 {
		t.Errorf("%v of %d calls, %d latencies; metrics have %d refusals", hits, callers*calls, slow, refused)
	}
}
