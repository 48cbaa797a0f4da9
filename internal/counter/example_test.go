package counter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
)

// A call counts under all of its limits or under none.
func ExampleMemory_Take() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c := counter.NewMemory(func() time.Time { return now })
	limits := []counter.Limit{
		{Key: "rate of a key", Kind: counter.Rate, Max: 2, Period: time.Second},
		{Key: "quota of a key", Kind: counter.Quota, Max: 100, Period: time.Hour},
	}
	counts := make([]counter.Count, len(limits))
	for range 3 {
		refused, err := c.Take(context.Background(), limits, 1, counts)
		if err != nil {
			fmt.Println(err)
			return
		}
		if refused >= 0 {
			fmt.Println("refused by the", limits[refused].Key)
			continue
		}
		fmt.Println("admitted,", counts[1].Remaining, "left until", time.UnixMilli(counts[1].ResetAt).UTC().Format(time.TimeOnly))
	}
	now = now.Add(time.Second)
	refused, _ := c.Take(context.Background(), limits, 1, counts)
	fmt.Println("a second later:", refused < 0, counts[1].Remaining)
	// Output:
	// admitted, 99 left until 13:00:00
	// admitted, 98 left until 13:00:00
	// refused by the rate of a key
	// a second later: true 97
}
