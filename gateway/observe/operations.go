package observe

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sluicegate/sluice/gateway/observe/usage"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

var (
	operationsTotal = describe("graphql_operations_total", "GraphQL operations, by type, name and what came of them; names beyond 200 of an API count as other.", "api", "type", "operation", "result")
	operationDepth  = describe("graphql_depth", "Levels of GraphQL operations, refused ones included.", "api")
	usageDropped    = describe("graphql_usage_dropped_total", "Reads of fields that the report on field usage had no room for.", "api")
)

// operations counts what was asked of a GraphQL API.
func (m *meter) operations(o *observed) {
	ex := o.ex
	if m.observer.usage == nil || ex.API == nil || ex.API.Schema == nil {
		return
	}
	a := m.usage.Load()
	if a == nil {
		a = m.observer.usage.Open(m.api)
		m.usage.Store(a)
	}
	result := resultOf(o)
	one := usage.Operation{Schema: ex.API.Schema, Key: ex.KeyName, At: ex.Started}
	for _, one.Facts = range ex.Operations {
		a.Count(one, result)
	}
}

// resultOf tells what came of the operations of an exchange. Errors within an
// answer are the upstream's business, and are not read.
func resultOf(o *observed) usage.Result {
	r := o.ex.Rejection
	switch {
	case r != nil && causes[r.Reason] == "" && r.Reason != pipeline.ReasonClientGone:
		return usage.Refused
	case r != nil || o.status >= 500:
		return usage.Failed
	}
	return usage.OK
}

func collectOperations(ch chan<- prometheus.Metric, a *usage.API, api string) {
	for _, r := range a.Runs() {
		ch <- total(operationsTotal, r.Count, api, r.Kind.String(), validLabel(r.Name), r.Result.String())
	}
	if count, sum, buckets := a.Depths(); count > 0 {
		ch <- prometheus.MustNewConstHistogram(operationDepth, count, sum, buckets, api)
	}
	ch <- total(usageDropped, a.Dropped(), api)
}
