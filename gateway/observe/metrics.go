package observe

import (
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// metrics is everything that /metrics shows.
type metrics struct {
	registry *prometheus.Registry
	apis     meters
	config   configState
}

func newMetrics(o Options) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), apis: meters{byID: make(map[string]*meter)}}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "The program that runs; always 1.",
		ConstLabels: prometheus.Labels{"version": o.Version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
	m.registry.MustRegister(
		build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&traffic{&m.apis},
		&m.config,
		&sourceCollector{sources: o.Sources, access: o.Access},
	)
	return m
}

// describe makes the description of a metric with labels.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("sluice_"+name, help, labels, nil)
}

var (
	requestsTotal   = describe("requests_total", "Requests answered, by method and class of status.", "api", "method", "code")
	rejectionsTotal = describe("rejections_total", "Requests that the gateway refused or failed, by reason.", "api", "reason")
	retiringTotal   = describe("retiring_key_requests_total", "Requests with a key that has a successor and ends before long.", "api")
	requestSeconds  = describe("request_seconds", "Time from a request's arrival to its answer.", "api")
	gatewaySeconds  = describe("gateway_seconds", "The gateway's own part of request_seconds.", "api")
	upstreamSeconds = describe("upstream_seconds", "Time from asking the upstream to the head of its answer.", "api")
	upstreamErrors  = describe("upstream_errors_total", "Requests that failed at the upstream, by cause.", "api", "cause")
)

// causes names the reasons that are the upstream's.
var causes = map[pipeline.Reason]string{
	pipeline.ReasonUpstreamLookup:    "dns",
	pipeline.ReasonUpstreamConnect:   "dial",
	pipeline.ReasonUpstreamTLS:       "tls",
	pipeline.ReasonUpstreamTimeout:   "timeout",
	pipeline.ReasonUpstreamReset:     "reset",
	pipeline.ReasonUpstreamMalformed: "malformed",
	pipeline.ReasonUpstreamBusy:      "busy",
}

// traffic shows the series of all APIs that have been called.
type traffic struct{ apis *meters }

// Describe implements prometheus.Collector.
func (t *traffic) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		requestsTotal, rejectionsTotal, retiringTotal, wouldRefuse, requestSeconds, gatewaySeconds, upstreamSeconds, upstreamErrors,
		operationsTotal, operationDepth, usageDropped,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (t *traffic) Collect(ch chan<- prometheus.Metric) {
	for _, m := range t.apis.all() {
		n := m.counts.Load().read()
		n.collect(ch, validLabel(m.api))
		if s := m.spared.Load(); s != nil {
			s.collect(ch, validLabel(m.api))
		}
		if a := m.usage.Load(); a != nil {
			collectOperations(ch, a, validLabel(m.api))
		}
	}
}

func (n *numbers) collect(ch chan<- prometheus.Metric, api string) {
	for m := range n.requests {
		for c, times := range n.requests[m] {
			if times > 0 {
				ch <- total(requestsTotal, times, api, methodNames[m], classNames[c])
			}
		}
	}
	if n.retiring > 0 {
		ch <- total(retiringTotal, n.retiring, api)
	}
	for r, times := range n.rejections {
		if times == 0 {
			continue
		}
		ch <- total(rejectionsTotal, times, api, reasonNames[r])
		if cause := causes[pipeline.Reason(r)]; cause != "" {
			ch <- total(upstreamErrors, times, api, cause)
		}
	}
	n.times.collect(ch, partTotal, requestSeconds, api)
	n.times.collect(ch, partOwn, gatewaySeconds, api)
	n.times.collect(ch, partUpstream, upstreamSeconds, api)
}

func (t *times) collect(ch chan<- prometheus.Metric, part int, desc *prometheus.Desc, api string) {
	if count, sum, buckets := t.read(part); count > 0 {
		ch <- prometheus.MustNewConstHistogram(desc, count, sum, buckets, api)
	}
}

func total(desc *prometheus.Desc, n uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
}

func gauge(desc *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
}

// validLabel makes text fit for a label: one that is not UTF-8 would cost the
// whole scrape.
func validLabel(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
