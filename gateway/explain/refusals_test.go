package explain

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
)

func idOf(n int) string { return fmt.Sprintf("%02x%030x", n%256, n) }

// refusedExchange is one that a quota refused.
func refusedExchange(t testing.TB, id string) *pipeline.Exchange {
	t.Helper()
	call, fault := wire.Imagine([]byte("POST /orders/7?key=in-the-query HTTP/1.1\r\nHost: a\r\nAuthorization: in-the-header\r\nContent-Length: 11\r\n\r\nin-the-body"), limits)
	if fault != nil {
		t.Fatal(fault.Text)
	}
	ex := pipeline.For(call)
	copy(ex.ID[:], id)
	ex.API = &pipeline.API{Definition: &definition.API{ID: "orders", Name: "Orders", OrgID: "o"}}
	ex.Version = &pipeline.Version{Name: "v2"}
	ex.Revision, ex.KeyName, ex.Token = "42", "3fa9c1d2e4b5", []byte("in-the-header")
	ex.Client = netip.MustParseAddr("203.0.113.9")
	ex.Rejection = pipeline.NewRejection(pipeline.ReasonQuotaExceeded, 403, "Quota exceeded")
	ex.Grant = pipeline.NewGrant()
	ex.Grant.Policy = "demo"
	ex.Grant.Rate = ex.Grant.AddLimit(counter.Limit{Key: "r", Kind: counter.Rate, Max: 5, Period: time.Second})
	ex.Grant.Quota = ex.Grant.AddLimit(counter.Limit{Key: "q", Kind: counter.Quota, Max: 10, Period: time.Minute})
	ex.Charge.Counts[0], ex.Charge.Counts[1] = counter.Count{Remaining: 3}, counter.Count{Remaining: 0, ResetAt: 1_700_000_000_000}
	ex.Charge.Whole = true
	ex.Stopped = &pipeline.StageKind{Name: "limit"}
	return ex
}

func TestRefusalsAreFoundByTheirIDs(t *testing.T) {
	r := NewRefusals(100)
	ex := refusedExchange(t, idOf(7))
	r.Add(ex)
	got, ok := r.Find(idOf(7))
	if !ok {
		t.Fatal("not found")
	}
	at := time.UnixMilli(1_700_000_000_000).UTC()
	want := fmt.Sprintf("%+v", Refusal{
		ID: idOf(7), At: time.Unix(0, ex.Started.UnixNano()).UTC(), Stage: "limit", Status: 403, Reason: "quota_exceeded", Message: "Quota exceeded",
		Method: "POST", Path: "/orders/7", Client: "203.0.113.9", API: got.API, Key: "3fa9c1d2e4b5", Policy: "demo", Revision: "42", Limits: got.Limits,
	})
	if fmt.Sprintf("%+v", *got) != want {
		t.Errorf("got %+v\nwant %s", *got, want)
	}
	if !reflect.DeepEqual(*got.API, API{ID: "orders", Org: "o", Name: "Orders", Version: "v2"}) {
		t.Errorf("api %+v", *got.API)
	}
	if len(got.Limits) != 2 || got.Limits[0] != (Counted{Kind: "rate", Max: 5, Period: "1s", Remaining: 3}) ||
		got.Limits[1].Kind != "quota" || !got.Limits[1].ResetAt.Equal(at) {
		t.Errorf("limits %+v", got.Limits)
	}
	for _, id := range []string{idOf(8), "", "x", strings.ToUpper(idOf(171))} {
		if _, ok := r.Find(id); ok {
			t.Errorf("%q was found", id)
		}
	}
}

func TestRefusalsHoldNoSecretsAndNoBodies(t *testing.T) {
	r := NewRefusals(1)
	r.Add(refusedExchange(t, idOf(1)))
	for i := range r.shards {
		for j := range r.shards[i].ring {
			if text := string(r.shards[i].ring[j].text[:]); strings.Contains(text, "in-the-") {
				t.Errorf("kept: %q", text)
			}
		}
	}
}

func TestTheOldestRefusalsAreForgotten(t *testing.T) {
	const most = 64
	r := NewRefusals(most)
	for n := range 10 * most {
		r.Add(refusedExchange(t, idOf(n)))
	}
	found := 0
	for n := range 10 * most {
		if _, ok := r.Find(idOf(n)); ok {
			found++
			if n < 4*most {
				t.Errorf("the %dth of %d is remembered", n, 10*most)
			}
		}
	}
	if found == 0 || found > most {
		t.Errorf("%d are remembered, want up to %d", found, most)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	r := NewRefusals(1)
	ex := refusedExchange(t, idOf(1))
	long := strings.Repeat("é", 5000)
	ex.API.Definition = &definition.API{ID: long, Name: long, OrgID: long}
	ex.Version.Name, ex.Revision, ex.KeyName, ex.Grant.Policy = long, long, long, long
	ex.Call.Method, ex.Call.Path = []byte(long), []byte(long)
	ex.Rejection = pipeline.NewGraphQLRejection(pipeline.ReasonGraphQLInvalid, 400, long, []byte(long))
	r.Add(ex)
	got, ok := r.Find(idOf(1))
	if !ok || len(got.Errors) == 0 || len(got.Message) == 0 || !strings.HasPrefix(long, got.Errors) {
		t.Errorf("%v %+v", ok, got)
	}
	total := 0
	for _, n := range most {
		total += n
	}
	if total > capacity {
		t.Errorf("texts may have %d bytes in a capacity of %d", total, capacity)
	}
}

func TestNothingIsRememberedWithoutRoom(t *testing.T) {
	r := NewRefusals(0)
	r.Add(refusedExchange(t, idOf(1)))
	if _, ok := r.Find(idOf(1)); ok || r != nil {
		t.Error("remembered")
	}
}

func TestRememberingARefusalDoesNotAllocate(t *testing.T) {
	r := NewRefusals(shards)
	exs := make([]*pipeline.Exchange, 64)
	for n := range exs {
		exs[n] = refusedExchange(t, idOf(n))
		r.Add(exs[n])
	}
	i := 0
	if n := testing.AllocsPerRun(1000, func() { r.Add(exs[i%len(exs)]); i++ }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRefusalsOfManyAtOnce(t *testing.T) {
	r := NewRefusals(50)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			ex := refusedExchange(t, idOf(g))
			for range 500 {
				r.Add(ex)
				r.Find(idOf(g))
			}
		})
	}
	all.Wait()
}

func BenchmarkRemember(b *testing.B) {
	r, ex := NewRefusals(2048), refusedExchange(b, idOf(1))
	b.ReportAllocs()
	for b.Loop() {
		r.Add(ex)
	}
}
