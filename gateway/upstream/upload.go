package upstream

import (
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/wire"
)

// upload sends a body that the client is still sending. It runs beside the wait
// for the answer: an upstream may answer, and stop reading, at any time.
type upload struct {
	c       *conn
	client  wire.Client
	body    io.Reader
	left    int64 // of the body; -1: unknown, sent in chunks
	timeout time.Duration
	answer  atomic.Int64  // when the answer must begin, by the pool's clock; 0: the body is still being sent
	failed  atomic.Bool   // the client's body broke off: no answer is to be expected
	began   chan struct{} // closed once the client has sent something
	done    chan struct{}

	// Set before done is closed.
	err   error // why not all was sent
	fault any   // what body panicked with

	halted bool // whatever went wrong was our doing
	beside bool // it goes on beside the answer, until wait or halt
}

// uploadPiece is how much of a body is read at once, and uploadRoom what is
// kept free before it for a chunk's size line. In bytes.
const (
	uploadPiece = 32 << 10
	uploadRoom  = 10
)

var uploadBuffers = sync.Pool{New: func() any { b := make([]byte, uploadRoom+uploadPiece+2); return &b }}

// startUpload begins to send the body of a request whose head has been sent.
// The caller ends it with result.
func startUpload(c *conn, call *wire.Call, timeout time.Duration) *upload {
	u := &upload{
		c: c, client: call.Client(), body: call.Stream, left: call.Length,
		timeout: timeout, began: make(chan struct{}), done: make(chan struct{}),
	}
	c.upload, c.writeArmed = u, 0
	go u.run()
	return u
}

// answerBy is when the answer must begin: within the timeout after the body has
// been sent.
func (u *upload) answerBy() time.Duration {
	if by := u.answer.Load(); by != 0 {
		return time.Duration(by)
	}
	return never
}

func (u *upload) run() {
	defer func() {
		u.fault = recover() // goes on in the goroutine that serves the call
		by := u.c.pool.now()
		if u.fault != nil || u.err != nil && (isClientError(u.err) || isTimeout(u.err)) {
			u.failed.Store(true)
		} else {
			by += u.timeout
		}
		u.answer.Store(int64(by))
		_ = u.c.sock.SetReadDeadline(time.Unix(1, 0)) // the wait for the answer looks at by
		close(u.done)
	}()
	u.err = u.send()
}

func (u *upload) send() error {
	buf := uploadBuffers.Get().(*[]byte)
	defer uploadBuffers.Put(buf)
	for first := true; u.left != 0; first = false {
		room := (*buf)[uploadRoom : uploadRoom+uploadPiece]
		if u.left > 0 {
			room = room[:min(int64(len(room)), u.left)]
		}
		n, err := u.body.Read(room)
		if first {
			close(u.began)
		}
		if n > 0 {
			if werr := u.write(*buf, n); werr != nil {
				return werr
			}
		}
		switch {
		case err == io.EOF && u.left < 0:
			return u.push([]byte("0\r\n\r\n"))
		case err == io.EOF && u.left > 0:
			return clientError{io.ErrUnexpectedEOF}
		case err != nil && err != io.EOF:
			return clientError{err}
		}
	}
	return nil
}

// write sends buf[uploadRoom:uploadRoom+n], as a chunk when that is needed.
func (u *upload) write(buf []byte, n int) error {
	start, end := uploadRoom, uploadRoom+n
	if u.left < 0 {
		var line [uploadRoom]byte
		size := append(strconv.AppendInt(line[:0], int64(n), 16), "\r\n"...)
		start -= len(size)
		copy(buf[start:], size)
		end += copy(buf[end:], "\r\n")
	} else {
		u.left -= int64(n)
	}
	return u.push(buf[start:end])
}

func (u *upload) push(p []byte) error {
	if err := u.c.sock.SetWriteDeadline(time.Now().Add(u.timeout)); err != nil {
		return err
	}
	_, err := u.c.sock.Write(p)
	return err
}

// result returns the result of the call: err is that of reading the head of the
// answer. An upstream that accepts gets all of the body, and before a short answer
// goes to the client: a streamed answer may depend on the body that the upstream is
// still reading. An upstream that refuses early gets no more of the body.
func (u *upload) result(err error, status int, streamed bool) error {
	switch {
	case err != nil || status >= 300:
		u.halt()
		if err == nil {
			return nil
		}
	case !streamed || !u.goesOn():
		<-u.done
	default:
		u.beside = true
		return nil
	}
	if isClientError(u.err) && !u.halted {
		return u.err
	}
	return err
}

// goesOn reports whether the upload is under way, and not about to end.
func (u *upload) goesOn() bool {
	select {
	case <-u.done:
		return false
	case <-u.began: // by then the client has got 100 Continue, if it waited for that
	}
	wait := time.NewTimer(grace)
	defer wait.Stop()
	select {
	case <-u.done:
		return false
	case <-wait.C:
		return true
	}
}

// wait waits for an upload that went on beside the answer, and reports whether all of
// the body was sent. It halts the upload when the answer was not delivered.
func (u *upload) wait(delivered bool) bool {
	if delivered {
		<-u.done
	} else {
		u.halt()
	}
	return u.complete()
}

// grace is how long an upload may go on once it is of no more use. One that has
// just sent its last byte ends by itself.
const grace = 5 * time.Millisecond

// halt stops the upload wherever it waits. That takes the client's connection
// down with it, unless its body was complete.
func (u *upload) halt() {
	wait := time.NewTimer(grace)
	defer wait.Stop()
	select {
	case <-u.done:
		return
	case <-wait.C:
	}
	u.halted = true
	again := time.NewTicker(10 * time.Millisecond) // a deadline of its own may come after ours
	defer again.Stop()
	for {
		u.client.Interrupt()
		_ = u.c.sock.SetWriteDeadline(time.Unix(1, 0))
		select {
		case <-u.done:
			return
		case <-again.C:
		}
	}
}

// complete reports whether all of the body was sent. The upload must have ended.
func (u *upload) complete() bool { return u.err == nil && !u.halted }

func isClientError(err error) bool {
	_, ok := err.(clientError)
	return ok
}
