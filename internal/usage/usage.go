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
	Gateway  string `json:"gateway" doc:"its name"`
	Boot     string `json:"boot" doc:"changes with each start of the gateway"`
	Sequence int64  `json:"sequence" doc:"of the batch, from 1 at each start; a batch is handed over again under the same one"`

	Rows      []Row     `json:"rows"`
	Latencies []Latency `json:"latencies,omitempty"`
	Refusals  []Refusal `json:"refusals,omitempty" doc:"the newest of each key, in no order"`
	Samples   []Sample  `json:"samples,omitempty" doc:"requests that were recorded, if that is turned on, the oldest first"`
}

// A Row counts the calls of a minute that differ in their numbers only.
type Row struct {
	Minute int64  `json:"minute" doc:"its beginning, in unix seconds"`
	Org    string `json:"org,omitempty" doc:"of the API"`
	API    string `json:"api"`
	Key    string `json:"key,omitempty" doc:"identity of the key; empty for calls without a known one"`
	Status int    `json:"status" doc:"that was answered; 0 when nothing was"`
	Reason string `json:"reason,omitempty" doc:"why the gateway refused or failed the calls; empty when it did not"`

	Hits     int64 `json:"hits"`
	Total    int64 `json:"total_us" doc:"microseconds from the arrivals to the answers, summed up"`
	Upstream int64 `json:"upstream_us" doc:"of them, those of the upstream"`
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
	Minute int64     `json:"minute" doc:"its beginning, in unix seconds"`
	Org    string    `json:"org,omitempty" doc:"of the API"`
	API    string    `json:"api"`
	Counts Latencies `json:"counts" doc:"calls that took up to 100 us, up to twice that, and so on; the last has the rest"`
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
