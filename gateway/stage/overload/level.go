package overload

import "math"

// maxPasses bounds the search for a level. Each pass approaches it from below, so that
// a search that is cut short distributes too little, never too much.
const maxPasses = 64

// level returns the max-min fair share of total: demands below the level are met, all
// others get the level. It is +Inf when total is enough for all.
func level(wants []float64, total float64) float64 {
	sum, count := 0.0, 0
	for _, want := range wants {
		if want > 0 {
			sum += want
			count++
		}
	}
	if sum <= total {
		return math.Inf(1)
	}
	found := max(total, 0) / float64(count)
	for range maxPasses {
		rest, above := total, 0
		for _, want := range wants {
			if want > found {
				above++
			} else {
				rest -= max(want, 0)
			}
		}
		if above == 0 || rest <= found*float64(above) {
			break
		}
		found = rest / float64(above)
	}
	return found
}
