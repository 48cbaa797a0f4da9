package version

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
)

// A param names the version in a query parameter. Where the upstream does not see
// it, the first of its name counts.
type param struct {
	name     string // decoded
	stripped bool
}

func (p *param) read(ex *pipeline.Exchange) (name []byte, clear bool) {
	var first []byte
	found := false
	for rest := ex.Query(); len(rest) > 0; {
		var written, value []byte
		if _, written, value, rest = vars.CutPair(rest); !vars.EqualsDecoded(written, p.name) {
			continue
		}
		if found && !vars.SameDecoded(first, value) {
			return nil, false
		}
		if first, found = value, true; p.stripped {
			break
		}
	}
	if vars.IsPlain(first) {
		return first, true
	}
	ex.Buf, _ = vars.AppendDecoded(ex.Buf[:0], first)
	return ex.Buf, true
}

// strip takes every parameter of the name out of the query.
func (p *param) strip(ex *pipeline.Exchange, _ bool) (leads bool) {
	if p.stripped {
		// The query may be what is read: it is written behind that.
		ex.Outgoing.Query, ex.Outgoing.HasQuery = vars.WithoutParameter(ex.Outgoing.Query[:0], ex.Query(), p.name), true
	}
	return false
}

func (p *param) place() string { return "query parameter " + p.name }
