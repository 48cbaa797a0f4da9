package auth

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/query"
)

// parameterOf returns the value of the first parameter of a name, nil when there
// is none or it cannot be decoded. It aliases the query or ex.TokenBuf.
func parameterOf(ex *pipeline.Exchange, name string) []byte {
	for rest := ex.Call.Query; len(rest) > 0; {
		var written, value []byte
		if _, written, value, rest = query.Cut(rest); !query.Is(written, name) {
			continue
		}
		if query.IsPlain(value) {
			return value
		}
		decoded, whole := query.Append(ex.TokenBuf[:0], value)
		ex.TokenBuf = decoded
		if !whole {
			return nil
		}
		return decoded
	}
	return nil
}

// stripParameter takes every parameter of a name out of the query that goes
// upstream: the upstream might read another than the first.
func stripParameter(ex *pipeline.Exchange, name string) {
	if asked := ex.Query(); query.Has(asked, name) {
		// Perhaps in place: less is written than was read.
		ex.Outgoing.Query, ex.Outgoing.HasQuery = query.Without(ex.Outgoing.Query[:0], asked, name), true
	}
}
