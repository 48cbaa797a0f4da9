package graphql

import (
	"errors"
	"io"
	"os"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/gateway/wire"
)

var (
	tooLarge  = request.Refusal(pipeline.ReasonBodyTooLarge, 413, "The request body is too large.")
	tooSlow   = request.Refusal(pipeline.ReasonRequestTimeout, 408, "The request body took too long.")
	malformed = request.Refusal(pipeline.ReasonBadRequest, 400, "The request body is not framed as HTTP has it.")
	overLimit = pipeline.NewRejection(pipeline.ReasonBodyTooLarge, 400, "Request is too large")
	gone      = pipeline.NewRejection(pipeline.ReasonClientGone, 499, "Client closed request")
)

// firstRead is the first buffer of a streamed body, in bytes. It grows as data
// arrives, because the declared length is only a claim of the client.
const firstRead = 16 << 10

// readBody returns the whole body of a request. It is forwarded from memory.
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

// unread returns the refusal of a body that could not be read.
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
