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
	// Bearer token that /metrics asks for. Empty: none is asked for.
	Token secret.Value `yaml:"token"`
	// Where the spans of traces go.
	OTLP OTLP `yaml:"otlp"`
}

// OTLP holds the settings of a collector of traces that speaks OpenTelemetry's
// protocol over HTTP. Whether traces are recorded or not, the trace context of
// callers is passed on.
type OTLP struct {
	// Address of the collector, such as https://collector.internal:4318. Without a
	// path, that of the protocol is taken: /v1/traces. Empty: no traces are
	// recorded.
	Endpoint string `yaml:"endpoint" form:"url"`
	// Headers of the calls to it, as name=value with commas between them.
	Headers secret.Value `yaml:"headers" form:"pairs"`
	// Share of the traces that are recorded of those that begin here, 0.1 for a
	// tenth. For others their caller has decided.
	Sample float64 `yaml:"sample" range:"0..1"`
	// Permit a collector without TLS that is not on this machine.
	Insecure bool `yaml:"insecure"`
}

// Usage holds the settings of the counts of calls that gateways hand to the admin.
type Usage struct {
	// How often a gateway hands over what it has counted, at least: so much a
	// crash of it may lose.
	Flush time.Duration `yaml:"flush" range:"100ms..5m"`
	// How long counts are kept by the minute.
	RetentionMinute time.Duration `yaml:"retention_minute" range:"2d..60d"`
	// How long counts are kept by the hour.
	RetentionHour time.Duration `yaml:"retention_hour" range:"31d..3650d"`
}
