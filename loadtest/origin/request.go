package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/sluicegate/sluice/loadtest/load"
)

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

// parse takes the first request off b. Its size is 0 as long as it is not there
// whole. The request is good as long as b is.
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

// notFound answers paths that name no body.
var notFound = []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

func newAnswers() answers {
	all := make(answers)
	for _, name := range []string{"1k", "16k", "64k", "graphql"} {
		body, _ := load.Body([]byte(name))
		kind := "text/plain"
		if name == "graphql" {
			kind = "application/json"
		}
		all[name] = appendAnswer(nil, kind, body)
	}
	return all
}

func appendAnswer(dst []byte, kind string, body []byte) []byte {
	dst = fmt.Appendf(dst, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", kind, len(body))
	return append(dst, body...)
}

// to answers a request as answer does.
func (a answers) to(r request) []byte {
	name := r.path[bytes.LastIndexByte(r.path, '/')+1:]
	if r.post && string(name) != "graphql" {
		return appendAnswer(nil, "text/plain", r.body)
	}
	if whole, ok := a[string(name)]; ok {
		return whole
	}
	return notFound
}
