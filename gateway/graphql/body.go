package graphql

import (
	"errors"
	"io"
	"os"

	"github.com/sluicegate/sluice/gateway/graphql/request"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

var (
	tooLarge  = request.Refusal(pipeline.ReasonBodyTooLarge, 413, "The request body is too large.")
	tooSlow   = request.Refusal(pipeline.ReasonRequestTimeout, 408, "The request body took too long.")
	malformed = request.Refusal(pipeline.ReasonBadRequest, 400, "The request body is not framed as HTTP has it.")
	overLimit = pipeline.NewRejection(pipeline.ReasonBodyTooLarge, 400, "Request is too large")
	gone      = pipeline.NewRejection(pipeline.ReasonClientGone, 499, "Client closed request")
)

// firstRead is how much room a streamed body is given at first, in bytes. More
// is made as it comes: its length is only what the client says.
const firstRead = 16 << 10

// readBody returns the whole body of a request, which goes up from memory then.
func (s *Stage) readBody(w *work, call *wire.Call) ([]byte, *pipeline.Rejection) {
	most := s.opts.MaxBody
	if call.Stream == nil {
		if len(call.Body) > most {
			return nil, tooLarge
		}
		return call.Body, nil
	}
	if call.Length > int64(most) {
		return nil, tooLarge
	}
	if cap(w.body) < firstRead {
		w.body = make([]byte, 0, firstRead)
	}
	for {
		if len(w.body) == cap(w.body) {
			w.body = append(w.body, 0)[:len(w.body)]
		}
		n, err := call.Stream.Read(w.body[len(w.body):cap(w.body)])
		w.body = w.body[:len(w.body)+n]
		switch {
		case len(w.body) > most:
			return nil, tooLarge
		case err == io.EOF:
			call.SetBody(w.body)
			return w.body, nil
		case err != nil:
			return nil, unread(err)
		}
	}
}

// unread is why a body did not arrive.
func unread(err error) *pipeline.Rejection {
	switch {
	case errors.Is(err, wire.ErrBodyTooLarge):
		return tooLarge
	case errors.Is(err, wire.ErrBodyOverLimit):
		return overLimit
	case errors.Is(err, wire.ErrBodyMalformed):
		return malformed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooSlow
	}
	return gone
}
