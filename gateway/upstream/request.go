package upstream

import (
	"bytes"
	"strconv"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/forwardedfor"
)

// maxGather is the largest body that is copied behind its head, to be sent with
// one call; in bytes.
const maxGather = 32 << 10

// appendRequest appends the head of the request that goes upstream, and its
// body when that is at hand and not large. upgrade has the protocols that are
// asked for, or nil; it aliases the call.
func (f *forward) appendRequest(dst []byte, ex *pipeline.Exchange) (req, upgrade []byte, err error) {
	method := methodOf(ex)
	dst = append(dst, method...)
	dst = append(dst, ' ')
	dst = f.appendTarget(dst, ex)
	if f.preserveHost && len(ex.Call.Host) > 0 {
		dst = appendLine(dst, " HTTP/1.1\r\nHost: ", ex.Call.Host)
	} else {
		dst = append(dst, f.version...)
	}

	sent := forwarded{trusted: forwardedfor.Trust(ex.Call.Peer, f.trusted), trace: &ex.Trace}
	if ex.Live != nil && ex.Live.Streamed.Many() {
		sent.ofMany()
	}
	dst, err = sent.copyLines(dst, ex.Call, ex.Outgoing.Drop)
	if err != nil {
		return dst, nil, err
	}
	if f.upgrades(&sent, ex) {
		upgrade = sent.upgrade
		dst = appendUpgrade(dst, upgrade)
	}
	dst = sent.appendOwn(dst, ex)
	dst = append(dst, ex.Outgoing.Extra...)

	body, streamed := bodyOf(ex)
	if streamed {
		return append(appendFraming(dst, ex.Call.Length), "\r\n"...), nil, nil
	}
	if len(body) > 0 || expectsBody(method) {
		dst = appendFraming(dst, int64(len(body)))
	}
	dst = append(dst, "\r\n"...)
	if len(body) > maxGather {
		return dst, nil, nil
	}
	return append(dst, body...), upgrade, nil
}

var post = []byte("POST")

// methodOf returns the method of the request that goes upstream.
func methodOf(ex *pipeline.Exchange) []byte {
	if ex.Outgoing.Post {
		return post
	}
	return ex.Call.Method
}

// bodyOf returns the body that goes upstream; streamed when it is the client's
// and still on its way. A body of the client's that another one stands for is
// left to the server, which reads the rest of it or ends the connection.
func bodyOf(ex *pipeline.Exchange) (body []byte, streamed bool) {
	switch {
	case ex.Outgoing.HasBody:
		return ex.Outgoing.Body, false
	case ex.Call.Stream != nil:
		return nil, true
	default:
		return ex.Call.Body, false
	}
}

// appendFraming says how long the body is; a negative length is unknown.
func appendFraming(dst []byte, length int64) []byte {
	if length < 0 {
		return append(dst, "Transfer-Encoding: chunked\r\n"...)
	}
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, length, 10)
	return append(dst, "\r\n"...)
}

// expectsBody lists the methods whose empty body is worth a Content-Length.
func expectsBody(method []byte) bool {
	switch string(method) {
	case "POST", "PUT", "PATCH":
		return true
	}
	return false
}

func (f *forward) appendTarget(dst []byte, ex *pipeline.Exchange) []byte {
	rest, query := ex.Call.Path, ex.Call.Query
	if f.strip {
		rest = ex.Rest
	}
	if ex.Outgoing.HasPath {
		rest = ex.Outgoing.Path
	}
	if ex.Outgoing.HasQuery {
		query = ex.Outgoing.Query
	}
	if ex.Outgoing.Root {
		rest, query = nil, nil
	}
	return escapeTarget(f.target.Join(dst, rest, query, f.join), len(dst))
}

// escapeTarget makes sure that nothing in dst[start:] can end the request
// target. What comes from clients was checked; this holds for stages as well.
func escapeTarget(dst []byte, start int) []byte {
	clean := start
	for clean < len(dst) && targetByte[dst[clean]] {
		clean++
	}
	if clean == len(dst) {
		return dst
	}
	const hex = "0123456789ABCDEF"
	rest := bytes.Clone(dst[clean:])
	dst = dst[:clean]
	for _, c := range rest {
		if targetByte[c] {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

// targetByte has what a request target may be written with.
var targetByte = func() (set [256]bool) {
	for c := byte('!'); c < 0x7f; c++ {
		set[c] = c != '#'
	}
	return set
}()
