package wire

import (
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/http1"
)

// Answer is an answer whose head goes to the client as it is written here. The
// server adds what frames the body; Lines must not. An Answer with Status 0 is
// unused.
type Answer struct {
	Status int
	Phrase []byte // reason phrase; empty: the status's own. Its capacity may be written to
	Lines  []byte // header lines, each ended by CRLF, none of them about framing or the connection
	Body   []byte // whole body, unless Stream is set
	Spare  []byte // a buffer of length 0 for a body that must be kept: its user puts it back as it has grown

	// Stream is the body when it is not at hand. It is read to its end and
	// closed, or closed early when the client is gone. An error other than
	// io.EOF cuts the connection, so that no client takes a part for the whole.
	Stream io.ReadCloser
	Length int64 // of Stream, -1 when unknown; of the body left out, when NoBody

	// Beside says that the reader of Stream goes on reading the request's body
	// until Stream is closed. The connection ends with the answer.
	Beside bool

	// Close says that the connection ends with the answer: what the next request
	// needs is asked of a client at the beginning of a connection only.
	Close bool

	NoBody bool // no body follows, as for HEAD, 204 and 304; Length -1: say nothing of its length

	// Takeover, unless nil, is given the client's connection once the head has
	// been sent, for whatever it is that is spoken from there on, and what the
	// client has sent behind its request. Lines then say all that the head says.
	// The connection ends when Takeover returns. It has no deadlines but those
	// that Takeover sets, and is cut off when a Shutdown has waited for as long as
	// it may. The call and all that it reaches are gone by then. The client is
	// nil when it has gone: Takeover then only releases what it holds.
	Takeover func(client net.Conn, received []byte)
}

// Remove removes the lines of a header, in upper or lower case.
func (a *Answer) Remove(name string) { a.Lines = http1.RemoveLines(a.Lines, name) }

// Append adds a header line. The caller vouches that value has no line break.
func (a *Answer) Append(name string, value []byte) {
	a.Lines = append(a.Lines, name...)
	a.Lines = append(a.Lines, ": "...)
	a.Lines = append(a.Lines, value...)
	a.Lines = append(a.Lines, "\r\n"...)
}

// maxGather is the largest body that is copied behind its head, to be sent
// with one call; in bytes.
const maxGather = 32 << 10

// streamPiece is how much of a stream is read at once, in bytes.
const streamPiece = 32 << 10

// chunkSpace is kept free before a piece for its chunk size line.
const chunkSpace = 10

var lastChunk = []byte("0\r\n\r\n")

var pieces = sync.Pool{New: func() any { b := make([]byte, chunkSpace+streamPiece+2); return &b }}

// write sends the answer and reports whether the connection can go on.
func (c *conn) writeAnswer(a *Answer, keep bool) bool {
	out := c.appendHead(c.buffers.out[:0], a, &keep)
	whole := a.Stream == nil && !a.NoBody
	if whole && len(a.Body) <= maxGather {
		out = append(out, a.Body...)
	}
	_, err := c.sock.Write(out)
	if cap(out) <= maxOut {
		c.buffers.out = out[:0]
	}
	switch {
	case err != nil:
		keep = false
	case whole && len(a.Body) > maxGather:
		_, err = c.sock.Write(a.Body)
	case a.Stream != nil && !a.NoBody:
		err = c.writeStream(a)
		c.torn = err != nil && a.Length < 0 && c.buffers.call.HTTP10
	}
	if a.Stream != nil {
		_ = a.Stream.Close() // what it could say was said by Read
	}
	return keep && err == nil
}

// appendHead appends status line and header lines. It clears keep when only
// the end of the connection can end the body.
func (c *conn) appendHead(dst []byte, a *Answer, keep *bool) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(a.Status), 10)
	dst = append(dst, ' ')
	if len(a.Phrase) > 0 {
		dst = append(dst, a.Phrase...)
	} else {
		dst = append(dst, fasthttp.StatusMessage(a.Status)...)
	}
	dst = append(dst, "\r\n"...)
	dst = append(dst, a.Lines...)
	if a.Takeover != nil {
		return append(dst, "\r\n"...)
	}
	length := a.Length
	if a.Stream == nil && !a.NoBody {
		length = int64(len(a.Body))
	}
	switch {
	case length >= 0:
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, length, 10)
		dst = append(dst, "\r\n"...)
	case a.NoBody:
	case c.buffers.call.HTTP10:
		*keep = false
	default:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	}
	if !*keep {
		dst = append(dst, "Connection: close\r\n"...)
	} else if c.buffers.call.HTTP10 {
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// writeStream passes a stream on piece by piece, as the client takes them.
func (c *conn) writeStream(a *Answer) error {
	buf := pieces.Get().(*[]byte)
	defer pieces.Put(buf)
	chunked := a.Length < 0 && !c.buffers.call.HTTP10
	var t turn
	for sent := int64(0); ; {
		n, err := a.Stream.Read((*buf)[chunkSpace : chunkSpace+streamPiece])
		if n > 0 {
			sent += int64(n)
			if a.Length >= 0 && sent > a.Length {
				return io.ErrShortWrite // the stream lied about its length
			}
			if werr := c.writePiece(*buf, n, chunked); werr != nil {
				return werr
			}
			t.add(n)
		}
		switch {
		case err == io.EOF && a.Length >= 0 && sent < a.Length:
			return io.ErrUnexpectedEOF
		case err == io.EOF && chunked:
			_, err = c.sock.Write(lastChunk)
			return err
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// writePiece sends buf[chunkSpace:chunkSpace+n], framed as a chunk if asked.
func (c *conn) writePiece(buf []byte, n int, chunked bool) error {
	start, end := chunkSpace, chunkSpace+n
	if chunked {
		var line [chunkSpace]byte
		size := append(strconv.AppendInt(line[:0], int64(n), 16), "\r\n"...)
		start -= len(size)
		copy(buf[start:], size)
		end += copy(buf[end:], "\r\n")
	}
	_, err := c.sock.Write(buf[start:end])
	return err
}
