// Package usage is the contract between gateways and the admin about usage: how many
// calls there were in a minute by API, key, status and reason, the newest refusals of each
// key, and samples of requests.
package usage

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Other replaces the key of calls for which a gateway had no memory left. No key is
// stored under it.
const Other = "other"

// Bounds of a batch.
const (
	MaxRows      = 4000 // of calls
	MaxLatencies = 2000
	MaxText      = 512 // bytes of any text in it
)

// A Batch is what one gateway counted since its last batch.
type Batch struct {
	// Name of the gateway.
	Gateway string `json:"gateway"`
	// Text that is another one after each start of the gateway.
	Boot string `json:"boot"`
	// Number of the batch, from 1 at each start; a batch is handed over again under the same one.
	Sequence int64 `json:"sequence"`

	// Calls that were counted.
	Rows []Row `json:"rows"`
	// Times of the calls, by API and minute.
	Latencies []Latency `json:"latencies,omitempty"`
	// Records of refused requests, the newest of each key, in no order.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Requests that were recorded, if that is turned on, the oldest first.
	Samples []Sample `json:"samples,omitempty"`
}

// A Row counts the calls of a minute that differ in their numbers only.
type Row struct {
	// Unix seconds of the beginning of the minute.
	Minute int64 `json:"minute"`
	// Id of the organisation that the API belongs to.
	Org string `json:"org,omitempty"`
	// Id of the API; empty: calls that reached none.
	API string `json:"api"`
	// Hash of the key; empty for calls without a known one.
	Key string `json:"key,omitempty"`
	// HTTP status of the answers; 0: nothing was answered.
	Status int `json:"status"`
	// Reason for which the gateway refused or failed the calls; empty: it did not.
	Reason string `json:"reason,omitempty"`

	// Number of the calls.
	Hits int64 `json:"hits"`
	// Microseconds from the arrivals to the answers, summed up.
	Total int64 `json:"total_us"`
	// Microseconds of total_us that were the upstream's.
	Upstream int64 `json:"upstream_us"`
}

// IsError reports whether the calls of a row failed, for any reason.
func (r *Row) IsError() bool { return r.Reason != "" || r.Status == 0 || r.Status >= 400 }

// Buckets is the number of sizes of latencies.
const Buckets = 17

// Latencies is a histogram: up to FirstBound, up to twice that and so on; the last
// bucket has the rest.
type Latencies [Buckets]int64

// FirstBound is the largest latency of the first bucket.
const FirstBound = 100 * time.Microsecond

// A Latency is the histogram of an API in a minute.
type Latency struct {
	// Unix seconds of the beginning of the minute.
	Minute int64 `json:"minute"`
	// Id of the organisation that the API belongs to.
	Org string `json:"org,omitempty"`
	// Id of the API.
	API string `json:"api"`
	// Numbers of calls that took up to 100 microseconds, up to twice that, and so on; the last has the
	// rest.
	Counts Latencies `json:"counts"`
}

// Quantile estimates the q-quantile by linear interpolation within a bucket. Without
// calls it is 0; the last bucket ends at twice its lower bound.
func Quantile(counts []int64, q float64) time.Duration {
	var all int64
	for _, n := range counts {
		all += n
	}
	rank, below := q*float64(all), 0.0
	lower, upper := time.Duration(0), FirstBound
	for _, n := range counts {
		if n > 0 && below+float64(n) >= rank {
			return lower + time.Duration(float64(upper-lower)*max(0, rank-below)/float64(n))
		}
		below += float64(n)
		lower, upper = upper, 2*upper
	}
	return 0
}

// KeyOf returns the identity of a key in rows: a hash if identity must not be shown, as
// it is the key itself or a legacy hash.
func KeyOf(identity string, secret bool) string {
	if !secret || identity == "" {
		return identity
	}
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:])
}
