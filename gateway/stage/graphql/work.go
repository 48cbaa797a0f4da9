package graphql

import (
	"sync"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/graphql/values"
)

// work is the state of one request. It is pooled.
type work struct {
	head    request.Head
	decoder request.Decoder
	checker values.Checker

	body       []byte            // a streamed body
	out        []byte            // the body to forward in place of the original
	sizes      []int64           // of variables
	operations []*validate.Facts // the array of Exchange.Operations
	local      []byte            // the response if the upstream is not needed; shared
	get        bool              // the operation is in the URL
	dry        bool              // of a dry run: results are not cached
	judged     request.Request   // the last request of a dry run
	asked      *request.Request  // the subscription whose results are sent one by one, or nil
	effort     int               // spent on unknown operations, in units of validate
}

var works = sync.Pool{New: func() any { return new(work) }}

// maxKept bounds each buffer that is kept between requests, in bytes.
const maxKept = 64 << 10

// begin returns the work of an exchange, which releases it.
func begin(ex *pipeline.Exchange) *work {
	w := works.Get().(*work)
	ex.Held, w.dry = w, ex.IsDry()
	return w
}

// Release implements pipeline.Held.
func (w *work) Release() {
	w.decoder.Reset()
	clear(w.operations)
	w.judged, w.asked = request.Request{}, nil
	w.head, w.local, w.get, w.dry, w.effort = request.Head{}, nil, false, false, 0
	w.body, w.out, w.operations, w.sizes = w.body[:0], w.out[:0], w.operations[:0], w.sizes[:0]
	if cap(w.body) > maxKept || cap(w.out) > maxKept || cap(w.sizes) > maxKept/8 {
		w.body, w.out, w.sizes = nil, nil, nil
	}
	works.Put(w)
}

// note adds an operation to the exchange.
func (w *work) note(ex *pipeline.Exchange, f *validate.Facts) {
	w.operations = append(w.operations, f)
	ex.Operations = w.operations
}
