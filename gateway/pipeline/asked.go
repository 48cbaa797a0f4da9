package pipeline

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/wire"
)

// asked is a request as its client sent it.
type asked struct {
	method, lines, body []byte
	known               bool
}

// Rewrites notes the operation as its client sent it. A stage calls it before it makes the
// call one for the upstream.
func (l *Live) Rewrites(call *wire.Call) {
	if !l.asked.known {
		l.asked = asked{call.Method, bytes.Clone(call.Lines), call.Body, true}
	}
}

// AsAsked makes the call of an operation again what its client sent, once the upstream has
// answered: records of the exchange show that. The answer to a handshake is one to the
// operation.
func (ex *Exchange) AsAsked() {
	if ex.Live == nil || !ex.Live.asked.known {
		return
	}
	was := ex.Live.asked
	ex.Live.asked = asked{}
	ex.Call.Method = was.method
	ex.Call.SetLines(was.lines)
	ex.Call.SetBody(was.body)
	if ex.Answer.Status == 101 {
		ex.Answer.Status = 200
	}
}
