package traffic

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// plainAnswerBody is what a recorder answers unless it is told otherwise.
const plainAnswerBody = `{"data":{"up":true}}`

// arrived is a request as an upstream got it.
type arrived struct {
	line, head string // head is the lines with the request line
	header     http.Header
	body       string
}

// recorder is an upstream that keeps what reaches it, byte for byte, and answers
// what it is told to.
type recorder struct {
	mu     sync.Mutex
	calls  []arrived
	answer func(arrived) string // a whole answer
}

// newRecorder starts one and returns its URL.
func newRecorder(t testing.TB) (*recorder, string) {
	r := &recorder{}
	r.say("200 OK", "Content-Type: application/json\r\n", plainAnswerBody)
	return r, "http://" + testenv.RawOrigin(t, r.serve)
}

// say makes the recorder give one answer from now on.
func (r *recorder) say(status, lines, body string) {
	raw := fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s", status, lines, len(body), body)
	r.do(func(arrived) string { return raw })
}

func (r *recorder) do(answer func(arrived) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// reached returns what arrived since the last call.
func (r *recorder) reached() []arrived {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.calls
	r.calls = nil
	return all
}

func (r *recorder) serve(c net.Conn, _ int) {
	br := bufio.NewReader(c)
	for {
		var one seen
		req, err := one.readRequest(br)
		if err != nil {
			return
		}
		body, err := req.drain()
		if err != nil {
			return
		}
		got := arrived{one.lines[0], one.lastHead(), req.header, string(body)}
		r.mu.Lock()
		r.calls = append(r.calls, got)
		answer := r.answer
		r.mu.Unlock()
		if _, err := io.WriteString(c, answer(got)); err != nil {
			return
		}
	}
}

// graphs is a gateway before a recorder.
type graphs struct {
	*traffic
	up     *recorder
	target string // URL of the recorder
}

// newGraphs starts a gateway with APIs before one recorder, whose URL they are
// made with.
func newGraphs(t *testing.T, with settings, policies object, apis func(target string) []object) *graphs {
	t.Helper()
	up, target := newRecorder(t)
	return &graphs{newTraffic(t, with, policies, apis(target)...), up, target}
}

// oneGraph starts a gateway with the API "g".
func oneGraph(t *testing.T, keyless bool, more object) *graphs {
	t.Helper()
	return newGraphs(t, nil, nil, func(target string) []object { return []object{rig.GraphDef("g", target, keyless, more)} })
}

// post sends a body as JSON to an API.
func (g *graphs) post(id, body string, headers ...string) rig.Answer {
	g.T.Helper()
	return rig.Call(g.T, "POST", g.traffic.Traffic+"/"+id+"/", body, append([]string{"Content-Type", rig.JSONMedia}, headers...)...)
}

// ask posts an operation with a key.
func (g *graphs) ask(id, key, query string) rig.Answer {
	g.T.Helper()
	return g.post(id, rig.QueryBody(query), "Authorization", key)
}

// graphError is a GraphQL answer with one error that has no place.
func graphError(message string) string { return `{"errors":[{"message":` + rig.Quoted(message) + `}]}` }

// graphErrorAt is the same with a place in the document.
func graphErrorAt(message string, line, column int) string {
	return fmt.Sprintf(`{"errors":[{"message":%s,"locations":[{"line":%d,"column":%d}]}]}`, rig.Quoted(message), line, column)
}

// expectation is what a request should come to. Without a reason the upstream
// gets it; with one it does not.
type expectation struct {
	status int
	reason string
	body   string // "": any
}

// passes is the expectation of an operation that is allowed.
var passes = expectation{200, "", plainAnswerBody}

// check compares an answer, and what reached the upstream because of it.
func (g *graphs) check(what string, got rig.Answer, want expectation) {
	g.T.Helper()
	reached := g.up.reached()
	if got.Status != want.status || got.Reason() != want.reason || want.body != "" && got.Body != want.body || len(reached) > 0 != (want.reason == "") {
		g.T.Errorf("%s\n got %s\nwant %d %s %s\nthe upstream saw %q", what, got, want.status, want.reason, want.body, reached)
	}
}

// sumText is the SHA-256 of a text in hexadecimal.
func sumText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// remaining is the quota that an answer tells to be left.
func remaining(a rig.Answer) string { return a.Header.Get("X-RateLimit-Remaining") }
