package usage

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestQuantilesLieWithinTheirBucket(t *testing.T) {
	for _, c := range []struct {
		counts   []int64
		q        float64
		from, to time.Duration
	}{
		{nil, 0.5, 0, 0},
		{[]int64{0, 0}, 0.99, 0, 0},
		{[]int64{10}, 0.5, 50 * time.Microsecond, 50 * time.Microsecond},
		{[]int64{10, 10}, 0.5, 100 * time.Microsecond, 100 * time.Microsecond},
		{[]int64{10, 10}, 0.75, 150 * time.Microsecond, 150 * time.Microsecond},
		{[]int64{0, 0, 0, 100}, 0.01, 400 * time.Microsecond, 410 * time.Microsecond},
		{[]int64{99, 0, 0, 1}, 0.99, 100 * time.Microsecond, 100 * time.Microsecond},
		{[]int64{99, 0, 0, 1}, 1, 800 * time.Microsecond, 800 * time.Microsecond},
		{append(make([]int64, Buckets-1), 5), 1, 6553600 * time.Microsecond, 6553600 * time.Microsecond},
	} {
		if got := Quantile(c.counts, c.q); got < c.from || got > c.to {
			t.Errorf("%v of %v is %v, want %v to %v", c.q, c.counts, got, c.from, c.to)
		}
	}
}

func TestOnlyAClearKeyIsHashed(t *testing.T) {
	if KeyOf("a hash", false) != "a hash" || KeyOf("", true) != "" {
		t.Error("what is no key was hashed")
	}
	if got := KeyOf("abc", true); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("%s", got)
	}
}

func TestFailedCallsAreErrors(t *testing.T) {
	for row, want := range map[Row]bool{
		{Status: 200}: false, {Status: 101}: false, {Status: 304}: false, {Status: 404}: true, {Status: 502}: true,
		{}: true, {Status: 200, Reason: "graphql_invalid"}: true,
	} {
		if row.IsError() != want {
			t.Errorf("%+v: %v", row, row.IsError())
		}
	}
}

func TestABatchWithNumbersBeyondTheLimitsIsRefused(t *testing.T) {
	many := func(n int, r Row) (rows []Row) {
		r.API = "a"
		for range n {
			rows = append(rows, r)
		}
		return rows
	}
	for _, c := range []struct {
		rows      []Row
		latencies []Latency
		says      string
	}{
		{rows: many(MaxRows, Row{Hits: 1 << 28, Total: 1 << 44, Upstream: 1 << 44})},
		{rows: many(2, Row{Hits: 1 << 40}), says: "rows[1]: up to here"},
		{rows: many(MaxRows, Row{Hits: 1, Total: 1 << 53}), says: "total_us"},
		{rows: many(MaxRows, Row{Hits: 1, Upstream: 1 << 53}), says: "upstream_us"},
		{latencies: []Latency{{API: "a", Counts: Latencies{1 << 40}}, {API: "a", Counts: Latencies{1}}}, says: "latencies[1]: up to here"},
	} {
		b := Batch{Gateway: "g", Boot: "b", Sequence: 1, Rows: c.rows, Latencies: c.latencies}
		if _, _, err := b.Sift(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}

func TestRowsThatCannotBeCountedAreNamedAndTheOthersKept(t *testing.T) {
	row := Row{Minute: 60, API: "a", Status: 200, Hits: 3}
	bad := row
	bad.API = ""
	b := Batch{
		Gateway: "g", Boot: "b", Sequence: 1, Rows: []Row{row, bad, row},
		Latencies: []Latency{{API: "a", Counts: Latencies{1<<40 + 1}}, {API: "a"}, {}},
	}
	good, refused, err := b.Sift()
	if err != nil || len(good.Rows) != 2 || len(good.Latencies) != 1 || len(b.Rows) != 3 || len(b.Latencies) != 3 {
		t.Fatalf("%v, %+v of %+v", err, good, b)
	}
	want := "rows[1].api must not be empty|latencies[0].counts[0] is 1099511627777; it must be between 0 and 1099511627776|latencies[2].api must not be empty"
	if refused.Refused != 3 || refused.Calls != 3 || strings.Join(refused.Faults, "|") != want {
		t.Errorf("%+v", refused)
	}
	b.Rows = nil
	for range MaxRows {
		b.Rows = append(b.Rows, bad)
	}
	if _, refused, err = b.Sift(); err != nil || refused.Refused != MaxRows+2 || len(refused.Faults) != maxFaults {
		t.Errorf("%v, %d refused, %d named", err, refused.Refused, len(refused.Faults))
	}
}

// FuzzBatch reads batches as the admin does: what Sift lets pass can be stored.
func FuzzBatch(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"gateway":"g","boot":"b","sequence":1}`, `{"gateway":"g","boot":"\u0000","sequence":9223372036854775807}`,
		`{"gateway":"g","boot":"b","sequence":1,"rows":[{"minute":60,"org":"o","api":"a","key":"k","status":200,"reason":"r","hits":1,"total_us":5,"upstream_us":4}]}`,
		`{"gateway":"g","boot":"b","sequence":1,"latencies":[{"minute":120,"api":"a","counts":[1,2,3]}]}`,
		`{"gateway":"g","boot":"b","sequence":1,"rows":[null,{"minute":-60}]}`,
		`{"gateway":"g","boot":"b","sequence":1,"refusals":[null,{"id":"x","at":"2026-01-01T00:00:00Z","api_id":"a","reason":"r","status":403,"limits":[{"kind":"rate"}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var b Batch
		if json.Unmarshal(data, &b) != nil {
			return
		}
		good, refused, err := b.Sift()
		if err != nil {
			return
		}
		if len(good.Rows)+len(good.Latencies)+len(good.Refusals)+refused.Refused != len(b.Rows)+len(b.Latencies)+len(b.Refusals) || len(refused.Faults) > maxFaults || refused.Calls < 0 {
			t.Errorf("%d rows and %d latencies of %+v, refused: %+v", len(good.Rows), len(good.Latencies), b, refused)
		}
		for _, r := range good.Rows {
			if r.Minute%60 != 0 || r.Minute < 0 || r.Hits < 1 || r.Total < 0 || r.Status < 0 || r.Status > 999 || r.API == "" ||
				strings.ContainsRune(r.Org+r.API+r.Key+r.Reason, 0) || len(r.Key) > MaxText {
				t.Errorf("%+v was let pass", r)
			}
		}
		for _, r := range good.Refusals {
			if r.ID == "" || r.API == "" || r.Reason == "" || strings.ContainsRune(r.Path+r.Message+r.Key, 0) || len(r.Path) > MaxText {
				t.Errorf("%+v was let pass", r)
			}
		}
		for _, l := range good.Latencies {
			for _, n := range l.Counts {
				if n < 0 {
					t.Errorf("%+v was let pass", l)
				}
			}
		}
	})
}
