// Command origin is the upstream of the load tests. It responds with the bodies of
// package answer, using as little CPU as possible.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
	"github.com/sluicegate/sluice/loadtest/load"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9000", "`address` to listen on")
	flag.Parse()
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatalf("listening: %v", err)
	}
	log.Fatalf("serving: %v", serve(ln))
}

// A server answers on one thread, because on a shared machine the proxies under test
// lose what the upstream costs.
type server struct {
	poll    *load.Poller
	ln      int
	conns   []conn
	free    []int32
	in      []byte // what is read, before it is anybody's
	answers answers
}

// conn is a client's connection.
type conn struct {
	fd   int
	turn int32
	in   []byte // of a request that is not there whole
	out  []byte // what the socket did not take yet
	last bool   // it is closed when all of out is sent
}

// listening is the slot of the listener.
const listening = -1

// serve answers on one thread with epoll until it fails.
func serve(ln net.Listener) error {
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return errors.New("no TCP listener")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	l := &server{in: make([]byte, 256<<10), answers: newAnswers()}
	if l.poll, err = load.NewPoller(64); err != nil {
		return err
	}
	defer l.poll.Close()
	if err := raw.Control(func(fd uintptr) { l.ln = int(fd) }); err != nil {
		return err
	}
	if err := l.poll.Add(l.ln, listening, 0); err != nil {
		return err
	}
	err = l.run()
	runtime.KeepAlive(tcp) // its descriptor was in use until now
	return err
}

func (l *server) run() error {
	for {
		ready, err := l.poll.Wait(time.Hour)
		if err != nil {
			return err
		}
		for _, e := range ready {
			if e.Slot == listening {
				if err := l.accept(); err != nil {
					return err
				}
				continue
			}
			if c := &l.conns[e.Slot]; c.turn == e.Turn && !l.attend(c, e.What) {
				l.drop(e.Slot)
			}
		}
	}
}

// accept takes all clients that wait.
func (l *server) accept() error {
	for {
		fd, _, err := syscall.Accept4(l.ln, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		switch err {
		case nil:
		case syscall.EAGAIN:
			return nil
		case syscall.ECONNABORTED, syscall.EINTR:
			continue
		default:
			return fmt.Errorf("accepting a connection: %w", err)
		}
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1) // slower without it, not wrong
		if len(l.free) == 0 {
			l.free = append(l.free, int32(len(l.conns)))
			l.conns = append(l.conns, conn{})
		}
		i := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		l.conns[i].fd = fd
		if err := l.poll.Add(fd, i, l.conns[i].turn); err != nil {
			return err
		}
	}
}

func (l *server) drop(i int32) {
	c := &l.conns[i]
	_ = syscall.Close(c.fd) // nothing is left to be said on it
	*c = conn{turn: c.turn + 1, in: c.in[:0], out: c.out[:0]}
	l.free = append(l.free, i)
}

// attend does what a connection is ready for; false closes it.
func (l *server) attend(c *conn, what uint32) bool {
	if len(c.out) > 0 && what&load.Writable != 0 {
		rest := c.out
		c.out = c.out[:0]
		if !c.send(rest) || len(c.out) == 0 && (c.last || !l.digest(c, nil)) {
			return false
		}
	}
	if what&(load.Readable|load.Closed) == 0 {
		return true
	}
	for {
		n, err := load.Read(c.fd, l.in)
		if err == load.ErrAgain {
			return true
		}
		if err != nil || n == 0 || !l.digest(c, l.in[:n]) {
			return false
		}
		if n < len(l.in) && what&load.Closed == 0 { // the socket is empty: the next data is an event
			return true
		}
	}
}

// digest answers the requests that are there; false closes the connection. While
// an answer is not sent whole, what follows waits.
func (l *server) digest(c *conn, got []byte) bool {
	if len(c.in) > 0 || len(c.out) > 0 {
		c.in = append(c.in, got...)
		got = c.in
	}
	used := 0
	for len(c.out) == 0 && !c.last && used < len(got) {
		r, err := parse(got[used:])
		if err != nil {
			return false
		}
		if r.size == 0 {
			break
		}
		used += r.size
		c.last = r.last
		if !c.send(l.answers.to(r)) {
			return false
		}
	}
	if len(c.in) > 0 {
		c.in = c.in[:copy(c.in, c.in[used:])]
	} else {
		c.in = append(c.in, got[used:]...)
	}
	return !c.last || len(c.out) > 0
}

// send writes b, and keeps what the socket does not take; false: it takes nothing
// any more.
func (c *conn) send(b []byte) bool {
	n, err := load.Write(c.fd, b)
	if err != nil && err != load.ErrAgain {
		return false
	}
	if n < len(b) {
		c.out = append(c.out, b[max(n, 0):]...)
	}
	return true
}

// request is what matters of one.
type request struct {
	post bool
	path []byte // without what follows a question mark
	last bool   // the client wants the connection closed after the answer
	body []byte
	size int // of all of it
}

var (
	headEnd   = []byte("\r\n\r\n")
	lineEnd   = headEnd[:2]
	lengthOf  = []byte("content-length:")
	codingOf  = []byte("transfer-encoding:")
	connected = []byte("connection:")
	closing   = []byte("close")
)

// parse parses the first request in b. Its size is 0 while it is incomplete. The request
// refers to b.
func parse(b []byte) (r request, err error) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		if len(b) > maxBody {
			return r, errors.New("a request head without an end")
		}
		return r, nil
	}
	line, rest, _ := bytes.Cut(b[:end+len(lineEnd)], lineEnd)
	method, target, ok := bytes.Cut(line, []byte(" "))
	path, version, ok2 := bytes.Cut(target, []byte(" "))
	if !ok || !ok2 || !bytes.HasPrefix(version, []byte("HTTP/1.")) {
		return r, fmt.Errorf("%q is no request line", line)
	}
	r.path, _, _ = bytes.Cut(path, []byte("?"))
	r.post, r.last = string(method) == "POST", string(version) == "HTTP/1.0"
	length := 0
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, lineEnd)
		switch {
		case has(line, lengthOf):
			length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthOf):])))
			if err != nil || length < 0 || length > maxBody {
				return r, fmt.Errorf("%q is no length up to %d", line, maxBody)
			}
		case has(line, codingOf):
			return r, errors.New("a body in chunks: want a Content-Length")
		case has(line, connected):
			r.last = r.last || bytes.EqualFold(bytes.TrimSpace(line[len(connected):]), closing)
		}
	}
	if whole := end + len(headEnd) + length; whole <= len(b) {
		r.body, r.size = b[whole-length:whole], whole
	}
	return r, nil
}

func has(line, name []byte) bool {
	return len(line) >= len(name) && bytes.EqualFold(line[:len(name)], name)
}

// answers are what the origin says, whole, by the last segment of the path.
type answers map[string][]byte

// maxBody bounds a request's body.
const maxBody = 1 << 20

// notFound is the response for paths that name no body.
var notFound = []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

func newAnswers() answers {
	all := make(answers)
	for _, name := range []string{"1k", "16k", "64k", "graphql"} {
		body, _ := answer.Body([]byte(name))
		kind := "text/plain"
		if name == "graphql" {
			kind = "application/json"
		}
		all[name] = appendAnswer(nil, kind, body)
	}
	all["products"] = appendAnswer(nil, "application/json", []byte(answer.Products))
	all["reviews"] = appendAnswer(nil, "application/json", []byte(answer.Reviews))
	return all
}

func appendAnswer(dst []byte, kind string, body []byte) []byte {
	dst = fmt.Appendf(dst, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", kind, len(body))
	return append(dst, body...)
}

// to returns the response to a request: the body that the path names, whatever comes
// before the last slash, because a proxy may or may not strip its listen path. A POST
// gets its own body back, except on the paths of GraphQL.
func (a answers) to(r request) []byte {
	name := r.path[bytes.LastIndexByte(r.path, '/')+1:]
	if r.post && string(name) != "graphql" && string(name) != "products" && string(name) != "reviews" {
		return appendAnswer(nil, "text/plain", r.body)
	}
	if whole, ok := a[string(name)]; ok {
		return whole
	}
	return notFound
}
