package upstream

import (
	"io"
	"net"
	"time"
)

var testEpoch = time.Now()

// ended is a connection with a few bytes to read and nobody behind it.
type ended struct {
	net.Conn
	left  []byte
	piece int // most bytes of one read; 0: all that there is room for
}

func (e *ended) Read(p []byte) (int, error) {
	if len(e.left) == 0 {
		return 0, io.EOF
	}
	if e.piece > 0 {
		p = p[:min(len(p), e.piece)]
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

func (e *ended) Close() error                { return nil }
func (e *ended) SetDeadline(time.Time) error { return nil }

func (e *ended) SetReadDeadline(time.Time) error { return nil }
