package observe

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/metrics"
)

// registerOwn registers the metrics of the process, of traffic and of the
// configuration.
func (o *Observer) registerOwn(version string) {
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "The program that runs; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
	o.registry.MustRegister(
		build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		metrics.New(o.apis.collect, requestsTotal, rejectionsTotal, inGraceTotal, wouldRefuse, requestSeconds, gatewaySeconds, upstreamSeconds, upstreamErrors),
		metrics.New(o.config.collect, configRevision, configSwap, configSuccess, configFailed, configRejected, configSource),
	)
	if o.access != nil {
		o.registry.MustRegister(o.access.metrics())
	}
}

var (
	requestsTotal   = metrics.Describe("requests_total", "Requests answered, by method and class of status.", "api", "method", "code")
	rejectionsTotal = metrics.Describe("rejections_total", "Requests that the gateway refused or failed, by reason.", "api", "reason")
	inGraceTotal    = metrics.Describe("retiring_key_requests_total", "Requests with a key that has a successor and ends before long.", "api")
	requestSeconds  = metrics.Describe("request_seconds", "Time from a request's arrival to its answer.", "api")
	gatewaySeconds  = metrics.Describe("gateway_seconds", "The gateway's own part of request_seconds.", "api")
	upstreamSeconds = metrics.Describe("upstream_seconds", "Time from the beginning of a call upstream, connecting included, to the last byte of the answer, or to the failure.", "api")
	upstreamErrors  = metrics.Describe("upstream_errors_total", "Requests that failed at the upstream, by cause.", "api", "cause")
)

// causes are the reasons that are the upstream's, with their names in metrics.
var causes = map[pipeline.Reason]string{
	pipeline.ReasonUpstreamLookup:    "dns",
	pipeline.ReasonUpstreamConnect:   "dial",
	pipeline.ReasonUpstreamTLS:       "tls",
	pipeline.ReasonUpstreamTimeout:   "timeout",
	pipeline.ReasonUpstreamReset:     "reset",
	pipeline.ReasonUpstreamMalformed: "malformed",
	pipeline.ReasonUpstreamBusy:      "busy",
}

// collect shows the series of all APIs that have been called.
func (ms *meters) collect(ch chan<- prometheus.Metric) {
	for _, m := range ms.all() {
		n := m.counts.Load().read()
		n.collect(ch, metrics.Label(m.api))
		if s := m.reportOnly.Load(); s != nil {
			s.collect(ch, metrics.Label(m.api))
		}
	}
}

func (n *numbers) collect(ch chan<- prometheus.Metric, api string) {
	for m := range n.requests {
		for c, times := range n.requests[m] {
			if times > 0 {
				ch <- metrics.Counter(requestsTotal, times, api, methodNames[m], classNames[c])
			}
		}
	}
	if n.inGrace > 0 {
		ch <- metrics.Counter(inGraceTotal, n.inGrace, api)
	}
	for r, times := range n.rejections {
		if times == 0 {
			continue
		}
		ch <- metrics.Counter(rejectionsTotal, times, api, reasonNames[r])
		if cause := causes[pipeline.Reason(r)]; cause != "" {
			ch <- metrics.Counter(upstreamErrors, times, api, cause)
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
