package admin

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/http1"
)

// headFault returns what is wrong with the head of a request, or "". The library takes
// heads that a proxy in front may read in another way: lines that end without a carriage
// return, folded lines, spaces in names, a length beside a transfer coding, a second host
// (RFC 9112, sections 2.2, 3.2, 5 and 6). It keeps the lines as they came, but for the
// first. The connection of such a request must be closed.
func headFault(ctx *fasthttp.RequestCtx) string {
	var seen framing
	for lines := ctx.Request.Header.RawHeaders(); len(lines) > 0; {
		line, rest, _ := bytes.Cut(lines, []byte{'\n'})
		lines = rest
		line, ended := bytes.CutSuffix(line, []byte{'\r'})
		switch {
		case !ended || bytes.IndexByte(line, '\r') >= 0:
			return "A line of the head ends without CRLF"
		case len(line) == 0: // the end of the head
		case line[0] == ' ' || line[0] == '\t':
			return "Folded header lines are not accepted"
		default:
			name, value, _ := bytes.Cut(line, []byte{':'})
			if !http1.IsToken(name) {
				return "The head has a malformed header name"
			}
			seen.add(name, http1.Trim(value))
		}
	}
	return seen.fault(&ctx.Request.Header)
}

// framing is what the lines of a head say about where the request ends and which host it
// is for.
type framing struct {
	lengths, codings, hosts int
	coding, host            []byte
}

func (f *framing) add(name, value []byte) {
	switch {
	case http1.EqualFold(name, "content-length"):
		f.lengths++
	case http1.EqualFold(name, "transfer-encoding"):
		f.codings++
		f.coding = value
	case http1.EqualFold(name, "host"):
		f.hosts++
		f.host = value
	}
}

func (f *framing) fault(head *fasthttp.RequestHeader) string {
	switch {
	case f.lengths > 0 && f.codings > 0:
		return "The request has both a length and a transfer encoding"
	case f.lengths > 1 || f.codings > 1:
		return "The request has more than one length or transfer encoding"
	case f.codings == 1 && !http1.EqualFold(f.coding, "chunked"):
		return "Transfer-Encoding must be chunked"
	case f.codings == 1 && !head.IsHTTP11():
		return "Transfer-Encoding is not for HTTP/1.0"
	case f.hosts > 1 || f.hosts == 0 && head.IsHTTP11():
		return "One Host header is required"
	case f.hosts == 1 && !http1.IsHost(f.host):
		return "The Host header is malformed"
	}
	_, target, absolute := bytes.Cut(head.RequestURI(), []byte("://"))
	if !absolute || head.RequestURI()[0] == '/' {
		return ""
	}
	if end := bytes.IndexAny(target, "/?#"); end >= 0 {
		target = target[:end]
	}
	if f.hosts == 1 && !bytes.EqualFold(target, f.host) {
		return "The request target and the Host header name different hosts"
	}
	return ""
}
