package graphql

import (
	"sync"

	"github.com/sluicegate/sluice/gateway/graphql/request"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/graphql/values"
)

// work is what one request needs until it is over. It is pooled.
type work struct {
	head    request.Head
	decoder request.Decoder
	checker values.Checker

	body       []byte            // what came as a stream
	out        []byte            // what goes up in place of the body that came
	sizes      []int64           // of variables
	operations []*validate.Facts // behind Exchange.Operations
	local      []byte            // the answer, when the upstream is not needed; shared
	get        bool              // the operation came in the URL
	dry        bool              // the exchange is: what is found out is not kept
	judged     request.Request   // the last one that was judged, when dry
	effort     int               // that it took to examine what was not known, as validate counts it
}

var works = sync.Pool{New: func() any { return new(work) }}

// maxKept bounds, in bytes, each buffer that is kept between requests.
const maxKept = 64 << 10

// begin makes the exchange hold its work.
func begin(ex *pipeline.Exchange) *work {
	w := works.Get().(*work)
	ex.Held, w.dry = w, ex.Dry
	return w
}

// Release implements pipeline.Held.
func (w *work) Release() {
	w.decoder.Reset()
	clear(w.operations)
	w.judged = request.Request{}
	w.head, w.local, w.get, w.dry, w.effort = request.Head{}, nil, false, false, 0
	w.body, w.out, w.operations, w.sizes = w.body[:0], w.out[:0], w.operations[:0], w.sizes[:0]
	if cap(w.body) > maxKept || cap(w.out) > maxKept || cap(w.sizes) > maxKept/8 {
		w.body, w.out, w.sizes = nil, nil, nil
	}
	works.Put(w)
}

// note adds an operation to those that the exchange is known to ask for.
func (w *work) note(ex *pipeline.Exchange, f *validate.Facts) {
	w.operations = append(w.operations, f)
	ex.Operations = w.operations
}
