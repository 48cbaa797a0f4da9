package gateway

import (
	"io"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// passedOn is an answer that goes to the client as it arrives. The exchange is measured
// when it ends.
type passedOn struct {
	io.ReadCloser
	gateway *Gateway
	ex      *pipeline.Exchange // nil: it was measured
	meter   pipeline.Meter
	began   time.Time // when the head had come
	ended   time.Time // zero: it has not
	sent    int64     // bytes of the body
}

// passOn has an exchange measured at the end of its answer.
func (g *Gateway) passOn(ex *pipeline.Exchange, meter pipeline.Meter) {
	ex.Settle()
	ex.Answer.Stream = &passedOn{ReadCloser: ex.Answer.Stream, gateway: g, ex: ex, meter: meter, began: ex.Call.End()}
}

// Read implements io.Reader.
func (p *passedOn) Read(to []byte) (int, error) {
	n, err := p.ReadCloser.Read(to)
	p.sent += int64(n)
	if err != nil && p.ended.IsZero() {
		p.ended = time.Now()
	}
	return n, err
}

// Close implements io.Closer.
func (p *passedOn) Close() error {
	err := p.ReadCloser.Close()
	if p.ex != nil {
		p.finish()
		p.ex = nil
	}
	return err
}

// finish measures the exchange, and the internal calls by which the answer came.
func (p *passedOn) finish() {
	if p.ended.IsZero() { // the client has gone
		p.ended = time.Now()
	}
	ex := p.ex
	ex.Call.EndAt(p.ended)
	ex.Answer.Length = p.sent
	if u := &ex.Upstream; u.Address != "" && !u.Cached {
		u.Duration += p.ended.Sub(p.began)
	}
	if steps := ex.Trace.Steps; steps != nil {
		steps.Extend(forwarding, p.ended)
	}
	ex.Streamed(p.ended)
	p.gateway.finish(ex, p.meter)
}
