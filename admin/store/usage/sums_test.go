package usage

import (
	"math"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/usage"
)

func TestSumsBeyondBigintAreCapped(t *testing.T) {
	st, _ := fresh(t)
	minute := time.Now().Add(-24 * time.Hour).Truncate(time.Minute)
	for sequence := range int64(75) {
		b := &usage.Batch{Gateway: "gw", Boot: "b", Sequence: sequence + 1}
		for range 16 {
			minute = minute.Add(time.Minute)
			b.Rows = append(b.Rows, usage.Row{Minute: minute.Unix(), Org: "one", API: "a", Key: "k", Status: 200, Hits: 1, Total: 1 << 53, Upstream: 1 << 53})
		}
		add(t, st, b)
	}
	key := "k"
	byKey := everything("one")
	byKey.Key = &key
	for _, q := range []*Query{everything("one"), byKey} {
		if got := read(t, st, q).All; got != (Sums{Hits: 1200, Total: math.MaxInt64, Upstream: math.MaxInt64}) {
			t.Errorf("%+v", got)
		}
	}
}

func TestStoredSumsBeyondBigintAreCapped(t *testing.T) {
	st, url := fresh(t)
	now := time.Now()
	minute := now.Truncate(time.Hour).Add(-2 * time.Hour).Unix()
	hostile := func(sequence int64) *usage.Batch {
		b := &usage.Batch{Gateway: "gw", Boot: "b", Sequence: sequence}
		for range 16 {
			b.Rows = append(b.Rows, usage.Row{Minute: minute, Org: "one", API: "a", Key: "k", Status: 500, Hits: 1, Total: 1 << 53, Upstream: 1 << 53})
		}
		b.Latencies = []usage.Latency{{Minute: minute, Org: "one", API: "a", Counts: usage.Latencies{16}}}
		return b
	}
	for sequence := range int64(70) { // 64 come to 1<<63
		add(t, st, hostile(sequence+1))
	}
	// No gateway can hand over as many calls as it would take: what was stored is
	// put there.
	for _, table := range []string{"usage_minute", "usage_api_minute", "usage_api_hour"} {
		execute(t, url, "update "+table+" set hits = 9223372036854775800, errors = 9223372036854775800")
	}
	for _, table := range []string{"latency_minute", "latency_hour"} {
		execute(t, url, "update "+table+" set calls = 9223372036854775800")
	}
	add(t, st, hostile(71))
	sumAll(t, st, now)
	for _, table := range []string{"usage_minute", "usage_hour", "usage_api_minute", "usage_api_hour"} {
		for _, column := range []string{"hits", "errors", "total_us", "upstream_us"} {
			if n := ask[int64](t, url, "select min("+column+") from "+table); n != math.MaxInt64 {
				t.Errorf("%s.%s is %d", table, column, n)
			}
		}
	}
	for _, table := range []string{"latency_minute", "latency_hour"} {
		if n := ask[int64](t, url, "select min(calls) from "+table); n != math.MaxInt64 {
			t.Errorf("%s.calls is %d", table, n)
		}
	}
	q := topKeys(now.Add(-5*time.Hour).Truncate(time.Hour), now.Truncate(time.Hour))
	if got := read(t, st, q); got.Groups[0].Sums != (Sums{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}) || got.All != got.Groups[0].Sums {
		t.Errorf("%+v", got)
	}
	everyone := everything("one")
	everyone.By.API = true
	read(t, st, everyone)
}
