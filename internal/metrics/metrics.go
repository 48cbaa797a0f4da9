// Package metrics makes Prometheus metrics of numbers that packages count
// themselves. A package that counts has a method Metrics, which returns a collector;
// the composition root registers it.
package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Describe returns the description of a metric of Sluice. Its name is given without
// the prefix "sluice_".
func Describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("sluice_"+name, help, labels, nil)
}

// Counter returns a counter with its labels' values in the order of the description.
func Counter(desc *prometheus.Desc, n uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
}

// Gauge returns a gauge with its labels' values in the order of the description.
func Gauge(desc *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
}

// Flag returns a gauge that is 1 if on, and 0 otherwise.
func Flag(desc *prometheus.Desc, on bool, labels ...string) prometheus.Metric {
	v := 0.0
	if on {
		v = 1
	}
	return Gauge(desc, v, labels...)
}

// Label makes text that users chose fit for a label: a value that is not UTF-8 would
// fail the scrape.
func Label(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// New returns a collector of the described metrics. collect is called at every scrape
// and must be safe for concurrent use.
func New(collect func(chan<- prometheus.Metric), descs ...*prometheus.Desc) prometheus.Collector {
	return &collector{collect, descs}
}

type collector struct {
	collect func(chan<- prometheus.Metric)
	descs   []*prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) { c.collect(ch) }
