package upstream

import (
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

// maxSources is how many data sources have counts of their own. Requests to further ones are
// counted together, so that metrics have a bounded number of series.
const maxSources = 10_000

// The buckets of times are those of request_seconds: up to 100 microseconds, then twice that
// for each further one; the last holds the rest.
const (
	firstBound    = 100 * time.Microsecond
	sourceBuckets = 17
)

// sourceCounts are the requests to one data source. They outlive the Fetchers that are made
// for it when its API changes.
type sourceCounts struct {
	api, name string
	users     int // APIs in service; of Pools, under its mu

	mu      sync.Mutex
	times   [sourceBuckets]uint64
	sum     time.Duration
	classes [6]uint64 // of statuses; 0: there was no response
}

type sourceKey struct{ api, name string }

// newCounts returns the counts of a data source. They are dropped again by Swapped unless an
// API in service has them.
func (s *Pools) newCounts(api, name string) *sourceCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sourceKey{api, name}
	c := s.sources[key]
	if c == nil && len(s.sources) >= maxSources {
		return &s.others
	}
	if c == nil {
		c = &sourceCounts{api: api, name: name}
		if s.sources == nil {
			s.sources = make(map[sourceKey]*sourceCounts)
		}
		s.sources[key] = c
		s.unused = append(s.unused, c)
	}
	return c
}

// forget drops counts that no API in service has. It needs mu.
func (s *Pools) forget(c *sourceCounts) {
	if c.users <= 0 && c != &s.others {
		delete(s.sources, sourceKey{c.api, c.name})
	}
}

// count counts a request.
func (c *sourceCounts) count(status int, took time.Duration) {
	bucket := 0
	if took > firstBound {
		bucket = min(bits.Len64(uint64((took-1)/firstBound)), sourceBuckets-1)
	}
	class := status / 100
	if class >= len(c.classes) {
		class = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times[bucket]++
	c.sum += took
	c.classes[class]++
}

var (
	sourceRequests = metrics.Describe("source_requests_total", "Requests to data sources, by class of status.", "api", "source", "code")
	sourceSeconds  = metrics.Describe("source_seconds", "Time from the beginning of a request to a data source, connecting included, to the last byte of the response, or to the failure.", "api", "source")

	classNames = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}
)

// collect shows the counts of a data source that was called.
func (c *sourceCounts) collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	api, name := metrics.Label(c.api), metrics.Label(c.name)
	all := uint64(0)
	for class, n := range c.classes {
		if all += n; n > 0 {
			ch <- metrics.Counter(sourceRequests, n, api, name, classNames[class])
		}
	}
	if all == 0 {
		return
	}
	cumulative, below, bound := make(map[float64]uint64, sourceBuckets-1), uint64(0), firstBound
	for _, n := range c.times[:sourceBuckets-1] {
		below += n
		cumulative[bound.Seconds()] = below
		bound *= 2
	}
	ch <- prometheus.MustNewConstHistogram(sourceSeconds, all, c.sum.Seconds(), cumulative, api, name)
}

// collectSources shows the counts of all data sources.
func (s *Pools) collectSources(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	all := append(slices.Collect(maps.Values(s.sources)), &s.others)
	s.mu.Unlock()
	for _, c := range all {
		c.collect(ch)
	}
}
