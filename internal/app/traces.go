package app

import (
	"cmp"
	"os"

	"github.com/sluicegate/sluice/gateway/traces"
)

// newTraces returns the recorder of traces, or nil if there is no collector.
func newTraces(c common) (*traces.Recorder, error) {
	o := c.cfg.Telemetry.OTLP
	if o.Endpoint == "" {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "gateway"
	}
	return traces.New(traces.Options{
		Endpoint: o.Endpoint, Headers: o.Headers.Reveal(), Sample: o.Sample, Version: Version(),
		Instance: host + cmp.Or(c.cfg.Gateway.Listen, c.cfg.Gateway.TLS.Listen), Log: c.log,
	})
}
