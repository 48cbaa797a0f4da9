package observe

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/metrics"
)

var (
	configRevision = metrics.Describe("config_revision", "The configuration in force; always 1.", "revision")
	configSwap     = metrics.Describe("config_swap_seconds", "How long the last configuration took from its arrival until it was in force.")
	configSuccess  = metrics.Describe("config_last_success_timestamp", "When a configuration was last put in force, in unix seconds.")
	configFailed   = metrics.Describe("config_failed_definitions", "Definitions of the configuration in force that are not served as written.")
	configSource   = metrics.Describe("config_source", "Where the configuration in force came from; always 1.", "source")
	configRejected = metrics.Describe("config_rejected_total", "Configurations that were not put in force at all.")
)

// configState describes the configuration in force.
type configState struct {
	source   func() string // nil: not known
	rejected atomic.Uint64

	mu       sync.Mutex
	revision string
	took     time.Duration
	at       time.Time // zero before the first
	failed   int
}

func (c *configState) applied(revision string, took time.Duration, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision, c.took, c.at, c.failed = revision, took, time.Now(), failed
}

func (c *configState) collect(ch chan<- prometheus.Metric) {
	if c.source != nil {
		ch <- metrics.Gauge(configSource, 1, metrics.Label(c.source()))
	}
	ch <- metrics.Counter(configRejected, c.rejected.Load())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return
	}
	ch <- metrics.Gauge(configRevision, 1, metrics.Label(c.revision))
	ch <- metrics.Gauge(configSwap, c.took.Seconds())
	ch <- metrics.Gauge(configSuccess, float64(c.at.UnixMilli())/1000)
	ch <- metrics.Gauge(configFailed, float64(c.failed))
}
