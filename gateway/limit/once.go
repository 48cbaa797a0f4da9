package limit

import "github.com/sluicegate/sluice/gateway/pipeline"

// countedBefore tells whether the limits of the key have counted the request
// already, in an API that it was handed over from: one request is counted once
// under one limit. How these stand is noted then.
func countedBefore(ex *pipeline.Exchange) bool {
	for before := ex.Front; before != nil; before = before.Front {
		if before.Counted && before.KeyHash == ex.KeyHash && calls(before) >= calls(ex) && haveSameLimits(before.Grant, ex.Grant) {
			ex.Counts, ex.Counted = before.Counts, true
			return true
		}
	}
	return false
}

// haveSameLimits tells whether two grants have the same counters, with as much room
// in each.
func haveSameLimits(a, b *pipeline.Grant) bool {
	if a == nil || b == nil || len(a.Limits()) != len(b.Limits()) || a.Rate != b.Rate || a.Quota != b.Quota {
		return false
	}
	for i := range a.Limits() {
		if a.Limits()[i] != b.Limits()[i] {
			return false
		}
	}
	return true
}
