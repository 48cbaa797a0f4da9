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
	left []byte
}

func (e *ended) Read(p []byte) (int, error) {
	if len(e.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

func (e *ended) Close() error                { return nil }
func (e *ended) SetDeadline(time.Time) error { return nil }
