package amqp

import (
	"net"
	"sync"
)

// wireBuffer is how many bytes a corked wire collects.
const wireBuffer = 64 << 10

// A wire is the socket of a connection. While it is corked it collects what is written, so
// that many messages need one system call: the library flushes after each.
type wire struct {
	net.Conn

	mu    sync.Mutex
	corks int
	buf   []byte
}

// Read closes the socket when it fails: a writer that the peer has left waiting would
// otherwise keep the library from ending the connection.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.Conn.Close()
	}
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.corks == 0 || len(p) >= wireBuffer/2 {
		if err := w.flush(); err != nil {
			return 0, err
		}
		return w.Conn.Write(p)
	}
	w.buf = append(w.buf, p...)
	if len(w.buf) < wireBuffer {
		return len(p), nil
	}
	return len(p), w.flush()
}

// cork collects what is written until uncork is called.
func (w *wire) cork() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.corks++
}

// uncork writes what was collected, even if others have corked the wire as well.
func (w *wire) uncork() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.corks--
	_ = w.flush() // the connection has ended then, which its reader learns
}

// flush is called with mu.
func (w *wire) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.Conn.Write(w.buf)
	w.buf = w.buf[:0]
	if err != nil {
		w.Conn.Close()
	}
	return err
}
