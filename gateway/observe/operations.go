package observe

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/usage"
)

// countOperations counts the GraphQL operations of a request.
func (m *meter) countOperations(o *observed) {
	ex := o.ex
	if m.observer.operations == nil || ex.API == nil || ex.API.Schema == nil {
		return
	}
	a := m.operations.Load()
	if a == nil {
		a = m.observer.operations.Open(m.api)
		m.operations.Store(a)
	}
	result := resultOf(o)
	one := usage.Operation{Schema: ex.API.Schema, Key: ex.KeyName, At: ex.Started}
	for _, one.Facts = range ex.Operations {
		a.Count(one, result)
	}
}

// resultOf returns what became of the operations of an exchange. Errors within a
// response are not read.
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
