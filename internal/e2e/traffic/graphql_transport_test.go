package traffic

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// rawPost is a request as it is on the wire. lines are further header lines.
func rawPost(path, lines, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", path, lines, len(body), body)
}

// rawChunked is the same with a body in chunks of a size.
func rawChunked(path, body string, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", path)
	for len(body) > 0 {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x;ext=\"%d\"\r\n%s\r\n", n, n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// goodBodies are requests that are allowed, written in every way that JSON and
// GraphQL leave open.
var goodBodies = []string{
	`{"query":"{ secret }"}`,
	" \t\r\n{ \"variables\" :\n{ \"c\" : \"D\\u0045\" , \"unused\":[1.50e+2,{}] },\"query\":\"query Q($c: ID!) {\\n country(code: $c) { n\\u0061me } }\"  } \n",
	`{"query":"query A { secret } query B { animals { name } }","operationName":"B","variables":null,"extensions":null}`,
	`{"query":"query A { secret } query B { animals { name } }","operationName":"A"}`,
	`{"query":"{ secret }","operationName":""}`,
	`{"query":"mutation($n: String!) { rename(code: 7, name: $n) { code } }","variables":{"n":"\"é\u2028\\ud83d\ude00"}}`,
	`{"extensions":{"trace":{"a":[true,null]},"x":1e999},"query":"{ secret }","other":{"query":"{ nope }"},"tag":"7"}`,
	`{"query":"# { nope }\n\uFEFF query , { s:secret @skip(if:false) ,, countries(first:1,filter:{minimum:-0,order:ASCENDING}){...on Country{name}} }"}`,
	`{"query":"{ country(code: \"\"\"\n { nope } \"\"\") { code } }"}`,
	`{"query":"query($f: Filter) { countries(filter: $f) { code } }","variables":{"f":{"minimum":2147483647,"order":"DESCENDING","prefix":null}}}`,
	`{"query":"{ pet { ... on Cat { lives } ... on Dog { barks } __typename } __schema { queryType { name } } }"}`,
}

// What passes goes up as the client wrote it, to the byte, and so does the rest
// of the request.
func TestAllowedOperationsGoUpByteForByte(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, true, nil)
	long := `{"query":"{ secret }","extensions":{"pad":"` + strings.Repeat("0123456789", 20_000) + `"}}`
	var raw strings.Builder
	var want []string
	for range 2 { // unseen, then seen
		for _, body := range append(goodBodies, long) {
			for _, one := range []string{
				rawPost("/g/", "X-Mine: 1\r\n", body), rawChunked("/g/", body, 7+len(body)/40), rawPost("/g?a=%2f&b", "Content-Type-X: 1\r\n", body),
			} {
				raw.WriteString(one)
				want = append(want, body)
			}
		}
	}
	answers := parse(t, conversation(t, g.addr, raw.String()))
	reached := g.up.reached()
	if len(answers) != len(want) || len(reached) != len(want) {
		t.Fatalf("%d requests on one connection: %d answers, %d reached the upstream; the last answer is %v", len(want), len(answers), len(reached), answers[len(answers)-1])
	}
	lines := []string{"POST / HTTP/1.1", "POST / HTTP/1.1", "POST /?a=%2f&b HTTP/1.1"}
	for i, got := range reached {
		if got.body != want[i] {
			t.Errorf("the upstream got %.300q, want %.300q", got.body, want[i])
		}
		if got.line != lines[i%3] || got.header.Get("Content-Type") != rig.JSONMedia {
			t.Errorf("request %d is %s with Content-Type %q", i, got.line, got.header["Content-Type"])
		}
		if answers[i].Status != 200 || answers[i].Body != plainAnswerBody {
			t.Errorf("%.200s: %s", want[i], answers[i])
		}
	}
	if reached[0].header.Get("X-Mine") != "1" {
		t.Errorf("the client's header is not there: %s", reached[0].head)
	}
}

// Queries in the URL go up in the URL, with the escapes that the client chose.
func TestQueriesInTheURLGoUpAsTheyCame(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, true, nil)
	for _, params := range []string{
		"query=%7B+secret+%7D",
		"query={secret}",
		"a=1&query=%7b%20secret%20%7d&b=%2F;c",
		"operationName=B&query=query%20A{secret}query%20B{animals{name}}&variables={}&extensions=%7b%7D",
		"variables=%7B%22c%22:%22D%45%22%7D&query=query($c:ID!){country(code:$c){name}}",
		"q%75ery={%73ecret}&variables=&operationName=&extensions=null",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			got := parse(t, conversation(t, g.addr, method+" /g/?"+params+" HTTP/1.1\r\nHost: a\r\n\r\n"), method)
			reached := g.up.reached()
			if len(got) != 1 || got[0].Status != 200 || len(reached) != 1 || reached[0].line != method+" /?"+params+" HTTP/1.1" || reached[0].body != "" {
				t.Errorf("%s %s: %v; the upstream saw %q", method, params, got, reached)
			}
		}
	}
	// Beside a body the URL is not asked, and must not be by the upstream either.
	for _, params := range []string{"query={nope}", "query=mutation{x}&x=1", "x=1&q%75ery={nope}&variables={}"} {
		got := rig.Call(t, "POST", g.traffic.Traffic+"/g/?"+params, `{"query":"{ secret }"}`, "Content-Type", rig.JSONMedia)
		reached := g.up.reached()
		if got.Status != 200 || len(reached) != 1 || strings.Contains(reached[0].line, "ery") || strings.Contains(reached[0].line, "variables") || strings.Contains(params, "x=1") != strings.Contains(reached[0].line, "?x=1 ") {
			t.Errorf("%s: %s; the upstream saw %q", params, got, reached)
		}
	}
}

// Whatever the upstream answers comes down as it is: status, headers and body.
func TestAnswersOfGraphQLUpstreamsComeDownUnchanged(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, true, nil)
	c := connect(t, g.addr)
	br := bufio.NewReader(c)
	for _, up := range []struct{ status, lines, body string }{
		{"200 OK", "Content-Type: application/json\r\n", `{"data":{"a": null },"errors":[{"message":"late"}] }` + "\n"},
		{"200 Fine", "Content-Type: application/graphql-response+json; charset=utf-8\r\nX-Up: 1\r\nX-Up: 2\r\nCache-Control: private\r\n", `{"data":null}`},
		{"400 Bad Request", "Content-Type: application/json\r\n", `{"errors":[{"message":"no","extensions":{"code":"X"}}]}`},
		{"401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\nContent-Type: text/plain\r\n", "who are you?"},
		{"404 Not Found", "Content-Type: text/html\r\n", "<html>no GraphQL here</html>"},
		{"302 Found", "Location: /elsewhere\r\n", ""},
		{"429 Too Many Requests", "Retry-After: 7\r\n", "slowly"},
		{"500 Internal Server Error", "Content-Type: text/html\r\nSet-Cookie: a=b\r\n", "<h1>oh"},
		{"503 Service Unavailable", "", ""},
		{"599 Whatever", "Content-Type: application/octet-stream\r\nContent-Encoding: gzip\r\n", "\x1f\x8b\x00\xff\xfe"},
	} {
		g.up.say(up.status, up.lines, up.body)
		for _, raw := range []string{rawPost("/g/", "Accept: application/json\r\n", `{"query":"{ secret }"}`), "GET /g/?query={secret} HTTP/1.1\r\nHost: a\r\n\r\n"} {
			if _, err := io.WriteString(c, raw); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatalf("%s: %v", up.status, err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.Status != up.status || string(body) != up.body || resp.Header.Get("X-Sluice-Reason") != "" {
				t.Errorf("%s %q came down as %s %q %v, %v", up.status, up.body, resp.Status, body, resp.Header, err)
			}
			want, _ := http.ReadResponse(bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK\r\n"+up.lines+"\r\n")), nil)
			for name, values := range want.Header {
				if got := resp.Header[name]; strings.Join(got, "|") != strings.Join(values, "|") {
					t.Errorf("%s: %s is %q, want %q", up.status, name, got, values)
				}
			}
		}
	}
}

// The gateway does not wait for the end of an answer, nor keep it.
func TestAnswersOfGraphQLUpstreamsAreStreamed(t *testing.T) {
	t.Parallel()
	const part = 1 << 20
	half := make(chan struct{})
	origin := "http://" + testenv.RawOrigin(t, func(c net.Conn, _ int) {
		var one seen
		req, err := one.readRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		if _, err := req.drain(); err != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		_, _ = io.Copy(chunkWriter{c}, &pattern{size: part})
		<-half
		_, _ = io.Copy(chunkWriter{c}, &pattern{at: part, size: 2 * part})
		_, _ = io.WriteString(c, "0\r\n\r\n")
	})
	g := newTraffic(t, nil, nil, rig.GraphDef("g", origin, true, nil))
	resp, err := rig.FreshConns.Post(g.Traffic+"/g/", rig.JSONMedia, strings.NewReader(`{"query":"{ secret }"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, part)
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatalf("before the upstream has sent the rest: %v", err)
	}
	close(half)
	rest, err := io.ReadAll(resp.Body)
	want, _ := io.ReadAll(&pattern{size: 2 * part})
	if err != nil || string(first)+string(rest) != string(want) {
		t.Errorf("%d bytes of %d came, %v", len(first)+len(rest), len(want), err)
	}
}

// Subscriptions go to upstreams that answer them as event streams, below any
// path, by whoever may have them.
func TestSubscriptionsAsEventStreams(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, false, nil)
	free := g.newKey(object{"access_rights": rig.AccessTo("g"), "quota_max": 100, "quota_renewal_rate": 3600})
	poor := g.newKey(object{"access_rights": rig.AccessWith("g", object{"restricted_types": []object{rig.Restrict("Subscription", "renamed")}})})
	const events = "event: next\ndata: {\"data\":{\"renamed\":null}}\n\nevent: complete\ndata:\n\n"
	g.up.say("200 OK", "Content-Type: text/event-stream\r\n", events)
	const subscription = "subscription { renamed { code } }"
	for _, c := range []struct {
		key, accept, query string
		want               expectation
	}{
		{free, "text/event-stream", subscription, expectation{200, "", events}},
		{free, "application/json, text/event-stream;q=0.1", subscription, expectation{200, "", events}},
		{free, "application/json", subscription, expectation{406, mediaReason, ""}},
		{free, "application/json, text/event-stream;q=0", subscription, expectation{406, mediaReason, ""}},
		{free, "text/event-stream", "subscription { renamed { code } x: renamed { code } }", expectation{400, invalidReason, ""}},
		{free, "text/event-stream", "subscription { renamed { nope } }", expectation{400, invalidReason, ""}},
		{poor, "text/event-stream", subscription, fieldRefused("renamed", "Subscription")},
	} {
		for _, path := range []string{"/g", "/g/", "/g/stream?x=1"} {
			got := rig.Call(t, "POST", g.traffic.Traffic+path, rig.QueryBody(c.query), "Content-Type", rig.JSONMedia, "Accept", c.accept, "Authorization", c.key)
			g.check(path+", "+c.accept+": "+c.query, got, c.want)
			if c.want.status == 200 && got.Header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("the events are %s", got)
			}
		}
	}
	if got := rig.Call(t, "GET", g.traffic.Traffic+"/g/"+rig.QueryString(subscription), nil, "Accept", "text/event-stream", "Authorization", free); got.Body != events || remaining(got) != "93" {
		t.Errorf("in the URL: %s", got)
	}
}

// Behind a refusal the connection goes on where the next request begins: what is
// left of a body is not taken for one.
func TestConnectionsGoOnBehindRefusals(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, true, nil)
	hidden := rawPost("/g/", "X-Hidden: 1\r\n", `{"query":"{ secret }"}`)
	good := rawPost("/g/", "X-Next: 1\r\n", `{"query":"{ secret }"}`)
	for name, refused := range map[string]string{
		"wrong type":           strings.Replace(rawPost("/g/", "", hidden), "application/json", "text/plain", 1),
		"wrong type, chunked":  strings.Replace(rawChunked("/g/", hidden, 50), "application/json", "text/plain", 1),
		"compressed":           rawPost("/g/", "Content-Encoding: gzip\r\n", strings.Repeat(hidden, 500)),
		"no JSON":              rawPost("/g/", "", hidden),
		"no JSON, chunked":     rawChunked("/g/", hidden, 3),
		"invalid":              rawPost("/g/", "", `{"query":"{ nope }"}`),
		"wrong method":         strings.Replace(rawPost("/g/", "", hidden), "POST", "PUT", 1),
		"a body in GET":        strings.Replace(rawPost("/g/?query={secret}", "", hidden), "POST", "GET", 1),
		"a chunked GET":        strings.Replace(rawChunked("/g/?query={secret}", hidden, 9), "POST", "GET", 1),
		"a body in OPTIONS":    strings.Replace(rawPost("/g/", "", hidden), "POST", "OPTIONS", 1),
		"more than is allowed": rawPost("/g/", "", strings.Repeat(" ", 2<<20)+hidden),
		"more, chunked":        rawChunked("/g/", strings.Repeat(" ", 2<<20)+hidden, 100_000),
		"not chunked well":     "POST /g/ HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + hidden,
	} {
		raw := conversation(t, g.addr, refused+good)
		got, reached := parse(t, raw), g.up.reached()
		if len(got) == 0 || got[0].Status < 400 {
			t.Errorf("%s: %v", name, got)
			continue
		}
		if closes := strings.Contains(raw, "\r\nConnection: close\r\n"); closes != (len(got) == 1) {
			t.Errorf("%s: %d answers in %q", name, len(got), raw)
		}
		for _, one := range reached {
			if one.header.Get("X-Next") != "1" || one.header.Get("X-Hidden") != "" {
				t.Errorf("%s: the upstream saw %s", name, one.head)
			}
		}
		if len(reached) != len(got)-1 {
			t.Errorf("%s: %d requests reached the upstream behind %d answers", name, len(reached), len(got))
		}
	}
}

// What the schema alone answers is answered by the gateway; OPTIONS belong to
// the upstream.
func TestWhatDoesNotConcernTheSchema(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, true, nil)
	for _, c := range [][2]string{
		{"{ __typename }", `{"data":{"__typename":"Query"}}`},
		{"{ a: __typename __typename }", `{"data":{"a":"Query","__typename":"Query"}}`},
		{"query Q { ...F } fragment F on Query { x: __typename }", `{"data":{"x":"Query"}}`},
	} {
		query, want := c[0], c[1]
		for media, kind := range map[string]string{"": "application/json; charset=utf-8", "application/graphql-response+json": "application/graphql-response+json; charset=utf-8"} {
			got := g.post("g", rig.QueryBody(query), "Accept", media)
			inURL := rig.Call(t, "GET", g.traffic.Traffic+"/g/?query="+url.QueryEscape(query), nil, "Accept", media)
			for _, one := range []rig.Answer{got, inURL} {
				if one.Status != 200 || one.Body != want || one.Header.Get("Content-Type") != kind {
					t.Errorf("%s: %s", query, one)
				}
			}
		}
	}
	if reached := g.up.reached(); len(reached) > 0 {
		t.Errorf("the upstream saw %q", reached)
	}
	if got := rig.Call(t, "OPTIONS", g.traffic.Traffic+"/g/", nil, "Origin", "https://x", "Access-Control-Request-Method", "POST"); got.Status != 200 || len(g.up.reached()) != 1 {
		t.Errorf("OPTIONS: %s", got)
	}
}
