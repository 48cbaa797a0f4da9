package paths

import (
	"encoding/json"
	"net/textproto"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A Reply is an answer that a definition holds.
type Reply struct {
	Status  int      // 200 to 599
	Headers []Header // by name; Content-Type is always among them when there is a body
	Body    string
}

// A Header is one header line of a reply. Its value has no control characters.
type Header struct{ Name, Value string }

// An answer is a reply as it is written.
type answer struct {
	code           int
	body, bodyName string
	headers        map[string]string
}

// framing are the headers that say where a message ends or concern a connection.
// The gateway writes them itself.
var framing = map[string]bool{
	"Connection": true, "Content-Length": true, "Date": true, "Keep-Alive": true, "Proxy-Authenticate": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// reply checks an answer.
func (r *reader) reply(at string, a answer) (*Reply, bool) {
	before := len(r.faults)
	reply := &Reply{Status: a.code, Body: a.body}
	if a.code == 0 {
		reply.Status = 200
	}
	switch {
	case reply.Status < 200 || reply.Status > 599:
		r.faults.Addf(at+".code", "must be an HTTP status from 200 to 599, not %d", a.code)
	case a.body != "" && (a.code == 204 || a.code == 304):
		r.faults.Addf(at+"."+a.bodyName, "must be empty: an answer with status %d has no body", a.code)
	}
	typed := a.body == ""
	for _, name := range object.SortedKeys(a.headers) {
		value, where := a.headers[name], object.Entry(at+".headers", name)
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !isToken(name):
			r.faults.Add(where, "must be a header name, such as Content-Type")
		case framing[canonical]:
			r.faults.Add(where, "is written by the gateway itself; leave it out")
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			r.faults.Add(where, "must not hold control characters")
		}
		typed = typed || canonical == "Content-Type"
		reply.Headers = append(reply.Headers, Header{Name: canonical, Value: value})
	}
	if !typed {
		reply.Headers = append(reply.Headers, Header{Name: "Content-Type", Value: typeOf(a.body)})
	}
	return reply, len(r.faults) == before
}

// typeOf guesses the type of a body for which none is written.
func typeOf(body string) string {
	if json.Valid([]byte(body)) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
