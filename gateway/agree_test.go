package gateway_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// agreedRequests is how many requests are held against their explanations.
const agreedRequests = 100_000

// agreedReasons must all occur among them, or the test proves less than it says.
var agreedReasons = []pipeline.Reason{
	pipeline.ReasonRouteNotFound, pipeline.ReasonBadRequest, pipeline.ReasonHeaderTooLarge, pipeline.ReasonURLTooLong, pipeline.ReasonBodyTooLarge,
	pipeline.ReasonAuthMissing, pipeline.ReasonAuthUnknown, pipeline.ReasonAuthInactive, pipeline.ReasonAuthExpired,
	pipeline.ReasonAccessDenied, pipeline.ReasonURLDenied, pipeline.ReasonRateLimit, pipeline.ReasonQuotaExceeded, pipeline.ReasonNotServed,
	pipeline.ReasonGraphQLInvalid, pipeline.ReasonGraphQLTooLarge, pipeline.ReasonGraphQLMedia, pipeline.ReasonMethodNotAllowed,
	pipeline.ReasonDepthLimit, pipeline.ReasonOperationLimit, pipeline.ReasonFieldRestricted, pipeline.ReasonIntrospectionDisabled,
	pipeline.ReasonUntrustedDocument, pipeline.ReasonSchemaBroken, pipeline.ReasonAddressDenied, pipeline.ReasonPathDenied,
	pipeline.ReasonVersionUnknown, pipeline.ReasonVersionExpired, pipeline.ReasonVersionDenied, pipeline.ReasonLengthRequired,
	pipeline.ReasonAPIRateLimit, pipeline.ReasonAuthMalformed, pipeline.ReasonAuthThrottled, pipeline.ReasonTokenMalformed, pipeline.ReasonTokenSignature, pipeline.ReasonTokenClaims,
	pipeline.ReasonInternalLoop, pipeline.ReasonInternalTarget,
}

// What becomes of a request is what its explanation says, in status, reason and
// body; what goes upstream is what was planned.
func TestExplanationsAgreeWithWhatHappens(t *testing.T) {
	n := agreedRequests
	if race.Enabled {
		n /= 20
	}
	a := agree(t)
	client := &agreeClient{addr: a.Addr}
	defer client.close()
	g := &generator{rand.New(rand.NewPCG(6, 2026))}
	seen := map[string]int{}
	for i := range n {
		if g.one(50) {
			a.clock.Add(int64(time.Duration(g.IntN(3000)) * time.Millisecond))
		}
		d := g.request()
		q := parsed(t, d)
		before := a.asked.Load()
		told := a.Explain(q)
		if a.asked.Load() != before {
			t.Fatalf("request %d: an explanation reached the upstream", i)
		}
		got, err := client.do(q, d)
		if err != nil {
			t.Fatalf("request %d: %v of %s", i, err, d)
		}
		if why := disagreement(told, got); why != "" {
			t.Fatalf("request %d: %s\nrequest %s\ntold %+v\nsteps %+v\ngot %+v", i, why, d, told.Outcome, told.Steps, got)
		}
		seen[kindOfOutcome(told)]++
	}
	for _, reason := range agreedReasons {
		if seen[reason.String()] == 0 && !race.Enabled {
			t.Errorf("no request was refused with %s", reason)
		}
	}
	for _, kind := range []string{"forwarded", "answered"} {
		if seen[kind] == 0 {
			t.Errorf("no request was %s", kind)
		}
	}
	t.Log(seen)
}

func kindOfOutcome(r *explain.Report) string {
	switch {
	case !r.Outcome.Allowed:
		return r.Outcome.Reason
	case r.Outcome.Upstream != nil:
		return "forwarded"
	}
	return "answered"
}

// disagreement tells what an explanation says otherwise than it is.
func disagreement(told *explain.Report, got *agreeAnswer) string {
	o := &told.Outcome
	if o.Upstream != nil {
		if planned := o.Upstream.Method + " " + o.Upstream.Target; got.reached != planned {
			return fmt.Sprintf("%q was planned, and %q came upstream; %d %s", planned, got.reached, got.status, got.reason)
		}
		return ""
	}
	switch {
	case got.reached != "":
		return "it went upstream"
	case o.Status != got.status:
		return fmt.Sprintf("status %d, not %d", got.status, o.Status)
	case o.Reason != got.reason:
		return fmt.Sprintf("reason %q, not %q", got.reason, o.Reason)
	case o.Body != got.body && told.Method != "HEAD": // what cannot be read gets a body even then, which a client skips
		return fmt.Sprintf("body %q, not %q", got.body, o.Body)
	case o.Allowed == (o.Reason != ""):
		return "allowed, and refused for a reason"
	}
	return ""
}

func parsed(t *testing.T, d *described) *explain.Request {
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	q, err := explain.Parse(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return q
}

func (d *described) String() string {
	return fmt.Sprintf("%s %.200s %.300q %.300q (%d bytes, chunked %v)", d.Method, d.URL, d.Headers, d.Body, len(d.Body), d.chunked)
}

// agreeAnswer is what came of a request.
type agreeAnswer struct {
	status       int
	reason, body string
	reached      string // method and target that the upstream got; "" when it was not called
}

// agreeClient sends requests as they are described, over a connection that it
// keeps for as long as the gateway does.
type agreeClient struct {
	addr string
	conn net.Conn
	br   *bufio.Reader
}

func (c *agreeClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *agreeClient) do(q *explain.Request, d *described) (*agreeAnswer, error) {
	raw := q.Raw()
	if d.chunked {
		raw = slices.Clone(raw[:len(raw)-len(d.Body)])
		for chunk := range slices.Chunk([]byte(d.Body), 1000) { // none is too large by itself
			raw = fmt.Appendf(raw, "%x\r\n%s\r\n", len(chunk), chunk)
		}
		raw = append(raw, "0\r\n\r\n"...)
	}
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			return nil, err
		}
		c.conn, c.br = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(60 * time.Second))
	sent := make(chan error, 1)
	if len(raw) > 4000 { // the answer may come before all is sent
		conn := c.conn
		go func() { _, err := conn.Write(raw); sent <- err }()
	} else {
		_, err := c.conn.Write(raw)
		sent <- err
	}
	resp, err := http.ReadResponse(c.br, &http.Request{Method: d.Method})
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.Close {
		c.close()
	}
	if err := <-sent; err != nil && !resp.Close {
		return nil, err
	}
	got := &agreeAnswer{status: resp.StatusCode, reason: resp.Header.Get("X-Sluice-Reason"), body: string(body), reached: resp.Header.Get("X-Reached")}
	if resp.Header.Get("X-Cache") == "hit" {
		got.reached = "" // it was once, for another call
	}
	return got, nil
}

// A key that is named by its hash is let in where a client would be that shows what
// stands for it there, and for the same reasons it is not.
func TestExplanationsOfKeysByTheirHashes(t *testing.T) {
	a := agree(t)
	client := &agreeClient{addr: a.Addr}
	defer client.close()
	shown := map[string]func(key string) string{
		"rest": func(key string) string { return key },
		"users": func(key string) string {
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(strings.TrimPrefix(key, "o")+":right"))
		},
		"signers": func(key string) string {
			return signedToken(fmt.Sprintf(`{"alg":"HS256","kid":%q}`, key), `{"sub":"u"}`, "secret-of-tokens-of-32-bytes-or-more")
		},
	}
	for key := range agreedKeys {
		for api, credential := range shown {
			a.clock.Add(int64(time.Hour)) // nothing of it is left of any rate
			named := parsed(t, &described{URL: "/" + api + "/items", KeyHash: a.Hasher.Hash(key)})
			told := a.Explain(named)
			live := &described{URL: "/" + api + "/items", Headers: []string{"Authorization: " + credential(key)}}
			got, err := client.do(parsed(t, live), live)
			if err != nil {
				t.Fatal(err)
			}
			if why := disagreement(told, got); why != "" {
				t.Errorf("%s at %s: %s; told %+v, got %+v", key, api, why, told.Outcome, got)
			}
			if o := told.Outcome; o.Stage == "auth" && told.Key == nil && !strings.Contains(o.Fix, "key_hash") {
				t.Errorf("%s at %s: %q does not say what to name", key, api, o.Fix)
			}
		}
		text, _ := json.Marshal(a.Explain(parsed(t, &described{URL: "/rest/items", Headers: []string{"Authorization: " + key}})))
		if strings.Contains(string(text), key) {
			t.Errorf("an explanation tells the key: %s", text)
		}
	}
}
