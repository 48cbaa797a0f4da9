package config

import (
	"time"

	"github.com/sluicegate/sluice/internal/secret"
)

// Telemetry holds the settings of metrics, health and traces.
type Telemetry struct {
	// Serve Prometheus metrics at /metrics.
	Metrics bool `yaml:"metrics"`
	// Address of metrics and health for a gateway without an admin in its
	// process. Empty: none. With an admin they are on admin.listen.
	Listen string `yaml:"listen" form:"address"`
	// TLS at telemetry.listen.
	TLS ListenerTLS `yaml:"tls"`
	// Bearer token required by /metrics. Empty: none.
	Token secret.Value `yaml:"token" form:"sent"`
	// Destination of the spans of traces.
	OTLP OTLP `yaml:"otlp"`
}

// OTLP holds the settings of a trace collector for OpenTelemetry's protocol over HTTP.
// The trace context of callers is passed on whether traces are recorded or not.
type OTLP struct {
	// Address of the collector, such as https://collector.internal:4318. The default path
	// is /v1/traces. Empty: no traces are recorded.
	Endpoint string `yaml:"endpoint" form:"url"`
	// Headers of requests to the collector, as name=value separated by commas.
	Headers secret.Value `yaml:"headers" form:"pairs"`
	// Share of traces that are recorded, such as 0.1 for a tenth, of those that begin
	// here. For others the caller decides.
	Sample float64 `yaml:"sample" range:"0..1"`
	// Allow a collector without TLS that is not on this machine.
	Insecure bool `yaml:"insecure"`
}

// Usage holds the settings of the call counts that gateways send to the admin.
type Usage struct {
	// Longest interval between two reports of a gateway, and so the counts and the records
	// of refusals that a crash may lose.
	Flush time.Duration `yaml:"flush" range:"100ms..5m"`
	// How long counts per minute are kept.
	RetentionMinute time.Duration `yaml:"retention_minute" range:"2d..60d"`
	// How long counts per hour are kept.
	RetentionHour time.Duration `yaml:"retention_hour" range:"31d..3650d"`
	// How long the records of refused requests are kept: the newest 100 of each key, with
	// path and address of the caller, without query, body and credentials.
	RetentionRefusals time.Duration `yaml:"retention_refusals" range:"1h..90d"`
	// How long recorded requests are kept; see gateway.samples_per_second. Those of a key
	// are deleted with it.
	RetentionSamples time.Duration `yaml:"retention_samples" range:"1h..90d"`
	// Recorded requests that are kept of each organisation, the newest.
	SamplesKept int `yaml:"samples_kept" range:"1..100000"`
}
