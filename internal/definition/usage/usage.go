// Package usage is what gateways and the admin say to each other about traffic:
// how many calls there were in a minute, of whom, and what came of them.
package usage

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Other stands in the place of a key for calls that are told apart by everything
// but their key, for want of room. No key is stored under it.
const Other = "other"

// Bounds of a batch.
const (
	MaxRows      = 4000 // of calls
	MaxLatencies = 2000
	MaxText      = 512 // bytes of any text in it
)

// A Batch is what one gateway counted and has not handed over before.
type Batch struct {
	Gateway  string `json:"gateway" doc:"its name"`
	Boot     string `json:"boot" doc:"changes with each start of the gateway"`
	Sequence int64  `json:"sequence" doc:"of the batch, from 1 at each start; a batch is handed over again under the same one"`

	Rows      []Row     `json:"rows"`
	Latencies []Latency `json:"latencies,omitempty"`
}

// A Row counts the calls of a minute that are alike.
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

// IsError tells whether the calls of a row failed, for whatever reason.
func (r *Row) IsError() bool { return r.Reason != "" || r.Status == 0 || r.Status >= 400 }

// Buckets is how many sizes of latencies are told apart.
const Buckets = 17

// Latencies counts calls by how long they took: up to FirstBound, up to twice
// that and so on; the last bucket has the rest.
type Latencies [Buckets]int64

// FirstBound is the largest latency of the first bucket.
const FirstBound = 100 * time.Microsecond

// A Latency tells how long the calls to an API took in a minute.
type Latency struct {
	Minute int64     `json:"minute" doc:"its beginning, in unix seconds"`
	Org    string    `json:"org,omitempty" doc:"of the API"`
	API    string    `json:"api"`
	Counts Latencies `json:"counts" doc:"calls that took up to 100 us, up to twice that, and so on; the last has the rest"`
}

// Quantile estimates how long the fastest share q of calls took at most, within
// the bounds of a bucket. Without calls it is 0, and the last bucket counts as
// twice the bound before it.
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

// KeyOf returns what a key is called in rows: its identity, or a hash of that
// where it is the key itself.
func KeyOf(identity string, clear bool) string {
	if !clear || identity == "" {
		return identity
	}
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:])
}
