package observe

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	configRevision = describe("config_revision", "The configuration in force; always 1.", "revision")
	configSwap     = describe("config_swap_seconds", "How long the last configuration took from its arrival until it was in force.")
	configSuccess  = describe("config_last_success_timestamp", "When a configuration was last put in force, in unix seconds.")
	configFailed   = describe("config_failed_definitions", "Definitions of the configuration in force that are not served as written.")
	configRejected = describe("config_rejected_total", "Configurations that were not put in force at all.")
)

// configState is what is known about the configuration in force.
type configState struct {
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

// Describe implements prometheus.Collector.
func (c *configState) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{configRevision, configSwap, configSuccess, configFailed, configRejected} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *configState) Collect(ch chan<- prometheus.Metric) {
	ch <- total(configRejected, c.rejected.Load())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return
	}
	ch <- gauge(configRevision, 1, validLabel(c.revision))
	ch <- gauge(configSwap, c.took.Seconds())
	ch <- gauge(configSuccess, float64(c.at.UnixMilli())/1000)
	ch <- gauge(configFailed, float64(c.failed))
}
