package usage

import (
	"math"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition/usage"
)

func TestSumsBeyondAllNumbersAreStillAnswered(t *testing.T) {
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
