package wire

import (
	"bytes"
	"io"
	"time"
)

// Imagine returns the call that a server would hand over for a request, or what
// it would find wrong with it: a body that is larger than what is taken at once
// is a stream, as it is on a connection. A body that is announced in chunks
// stands behind the head without their frames. The call aliases request; with a
// fault it is as a Handler has it that refuses.
func Imagine(request []byte, conf Config) (*Call, *Fault) {
	call := &Call{Started: time.Now()}
	size := headEnd(request)
	if size == 0 || size > conf.MaxHeader {
		return call, tooLarge(request[:min(len(request), conf.MaxHeader)])
	}
	var h head
	if fault := h.parse(request[:size], call, &conf); fault != nil {
		return call, fault
	}
	body := request[size:]
	switch {
	case h.length == 0:
	case h.length > 0 && int64(len(body)) != h.length:
		return call, faultLength
	case h.inline():
		call.Body = body
	default:
		call.Stream = &imagined{rest: bytes.NewReader(body), left: conf.MaxBody}
	}
	return call, nil
}

// imagined reads a body that is at hand as if it came over a connection.
type imagined struct {
	rest    *bytes.Reader
	left    int64 // of what a body may have
	limited bool  // by LimitBody
}

// Read fails where a body of no announced length becomes too large.
func (b *imagined) Read(p []byte) (int, error) {
	if b.rest.Len() == 0 {
		return 0, io.EOF
	}
	switch {
	case b.left > 0:
	case b.limited:
		return 0, ErrBodyOverLimit
	default:
		return 0, ErrBodyTooLarge
	}
	n, err := b.rest.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
