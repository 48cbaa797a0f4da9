package explain

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/usage"
)

// exchangeOf returns an exchange with an API for a request.
func exchangeOf(t *testing.T, def *definition.API, request string) *pipeline.Exchange {
	t.Helper()
	call, fault := wire.Imagine([]byte(request), wire.Config{MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	ex := pipeline.For(call)
	ex.API, ex.Client = &pipeline.API{Definition: def}, netip.MustParseAddr("203.0.113.9")
	return ex
}

// taken records one exchange and returns the sample.
func taken(t *testing.T, o SampleOptions, ex *pipeline.Exchange) usage.Sample {
	t.Helper()
	s := NewSamples(o)
	s.Add(ex)
	var all []usage.Sample
	s.Take(func(one usage.Sample) { all = append(all, one) })
	if len(all) != 1 {
		t.Fatalf("%d samples", len(all))
	}
	return all[0]
}

func TestNoSampleHasACredential(t *testing.T) {
	const secret = "s3cr3t-ab12CD34"
	basic := base64.StdEncoding.EncodeToString([]byte("anna:" + secret))
	graph := &definition.API{
		ID: "a", GraphQL: &definition.GraphQL{Enabled: true},
		Auth: &definition.Auth{HeaderName: "X-Own", UseParam: true, ParamName: "own", UseCookie: true, CookieName: "ck"},
	}
	body := func(query string, variables any) string {
		text, _ := json.Marshal(map[string]any{"query": query, "variables": variables})
		return string(text)
	}
	many := `{ login(password: "` + secret + `", name: "anna") { ok } } # of ` + secret
	for name, c := range map[string]struct{ target, headers, body, token string }{
		"header of the API":    {target: "/x", headers: "X-Own: " + secret + "\r\n"},
		"Authorization":        {target: "/x", headers: "Authorization: Bearer " + secret + "\r\n"},
		"basic":                {target: "/x?who=" + secret, headers: "Authorization: Basic " + basic + "\r\n"},
		"cookie":               {target: "/x", headers: "Cookie: a=b; ck=" + secret + "\r\nX-Kept: again " + secret + "\r\n"},
		"query":                {target: "/x?own=" + secret + "&b=1"},
		"query, escaped name":  {target: "/x?%6Fwn=" + secret},
		"other parameter":      {target: "/x?api_key=" + secret + "&access_token=" + secret + "&code=" + secret},
		"the token in a path":  {target: "/x/" + secret + "/y", token: secret},
		"kept header":          {target: "/x", headers: "X-Auth-Token: " + secret + "\r\n"},
		"kept header, a token": {target: "/x", headers: "X-Kept: " + secret + "\r\n", token: secret},
		"argument":             {target: "/x", body: body(many, nil), token: secret},
		"argument alone":       {target: "/x", body: body(`{ login(input: {userPassword: """`+secret+`"""}) }`, nil)},
		"default":              {target: "/x", body: body(`query($token: [String!]! = "`+secret+`") { a }`, nil)},
		"variable":             {target: "/x", body: body("query($p: String) { a }", map[string]any{"password": secret, "deep": map[string]any{"clientSecret": []any{secret}}})},
		"batch":                {target: "/x", body: "[" + body("{ a }", map[string]any{"jwt": secret}) + "]"},
		"query of GET":         {target: "/x?query=%7B+login(token%3A+%22" + secret + "%22)+%7D&variables=%7B%22pwd%22%3A%22" + secret + "%22%7D"},
		"extensions":           {target: "/x", body: `{"query":"{ a }","extensions":{"token":"` + secret + `"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			head := c.headers + "Content-Type: application/json\r\n"
			if c.body != "" {
				head += fmt.Sprintf("Content-Length: %d\r\n", len(c.body))
			}
			ex := exchangeOf(t, graph, "POST "+c.target+" HTTP/1.1\r\nHost: h\r\n"+head+"\r\n"+c.body)
			ex.Token = []byte(c.token)
			one := taken(t, SampleOptions{Rate: 1, Headers: []string{"X-Kept", "X-Auth-Token", "X-Own", "Cookie"}}, ex)
			text, err := json.Marshal(one)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), secret) || strings.Contains(string(text), basic) {
				t.Errorf("%s", text)
			}
			if one.Cut || c.body != "" && (one.Body == "" || !json.Valid([]byte(one.Body))) {
				t.Errorf("the body is gone: %s", text)
			}
		})
	}
}

// What is not secret stays as it was, for rules look at it.
func TestASampleHasWhatRulesLookAt(t *testing.T) {
	def := &definition.API{
		ID: "a", OrgID: "o", GraphQL: &definition.GraphQL{Enabled: true}, Selector: &definition.VersionSelector{Location: "header", Key: "x-version"},
	}
	body := `{"query":"{ a(first: 5, by: \"name\") { b } }","variables":{"n":12345678901234567890,"f":"x"}}`
	ex := exchangeOf(t, def, "POST /p%2Fq?a=1&first=%3D HTTP/1.1\r\nHost: shop.example\r\nOrigin: https://x\r\nx-version: v2\r\nX-Other: no\r\n"+
		fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))+body)
	ex.KeyHash, ex.KeyName = strings.Repeat("ab", 32), "abababababab"
	ex.Session = &definition.Session{ApplyPolicies: []string{"gold"}}
	one := taken(t, SampleOptions{Rate: 1}, ex)
	if one.URL != "/p%2Fq?a=1&first=%3D" || one.Host != "shop.example" || strings.Join(one.Headers, ", ") != "Origin: https://x, X-Version: v2" ||
		one.Key != ex.KeyHash || one.Org != "o" || one.Client != "203.0.113.9" || one.Policies != nil {
		t.Errorf("%+v", one)
	}
	var was, is any
	if json.Unmarshal([]byte(body), &was) != nil || json.Unmarshal([]byte(one.Body), &is) != nil || fmt.Sprint(was) != fmt.Sprint(is) || !strings.Contains(one.Body, "12345678901234567890") {
		t.Errorf("body %s", one.Body)
	}
	q, err := Recorded(&one)
	if err != nil || q.KeyHash != one.Key || q.PathSent() != "/p%2Fq" || !strings.Contains(string(q.Raw()), "\r\nX-Version: v2\r\n") {
		t.Errorf("%v: %+v", err, q)
	}
	ex.Claims = []byte("{}")
	byToken := taken(t, SampleOptions{Rate: 1}, ex)
	if q, err = Recorded(&byToken); err != nil || q.KeyHash != "" || strings.Join(q.Policies, "") != "gold" {
		t.Errorf("a caller with claims: %v: %+v", err, q)
	}
}

func TestSamplesAreBounded(t *testing.T) {
	ex := exchangeOf(t, &definition.API{ID: "a"}, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
	s := NewSamples(SampleOptions{Rate: 3})
	for range 100 {
		s.Add(ex) // all within the second of the exchange's end
	}
	n := 0
	s.Take(func(usage.Sample) { n++ })
	if n != 3 || s.Lost() != 0 {
		t.Errorf("%d samples of a rate of 3, %d lost", n, s.Lost())
	}
	s = NewSamples(SampleOptions{Rate: 1 << 15})
	for range mostSamples + 10 {
		s.Add(ex)
	}
	n = 0
	s.Take(func(usage.Sample) { n++ })
	if n != mostSamples || s.Lost() != 10 {
		t.Errorf("%d samples, %d lost", n, s.Lost())
	}
	s.Add(ex)
	n = 0
	s.Take(func(usage.Sample) { n++ })
	if n != 1 {
		t.Errorf("%d samples after a Take", n)
	}
	if NewSamples(SampleOptions{}) != nil {
		t.Error("a rate of 0 records")
	}
	large := `{"query":"` + strings.Repeat("a", usage.MaxSampleBody) + `"}`
	one := taken(t, SampleOptions{Rate: 1}, exchangeOf(t, &definition.API{ID: "a", GraphQL: &definition.GraphQL{Enabled: true}},
		fmt.Sprintf("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", len(large))+large))
	if one.Body != "" || !one.Cut {
		t.Errorf("a large body: %d bytes, cut %v", len(one.Body), one.Cut)
	}
}

// A request that is not due costs no allocation, also when recording is on.
func TestRequestsThatAreNotRecordedDoNotAllocate(t *testing.T) {
	ex := exchangeOf(t, &definition.API{ID: "a"}, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
	s := NewSamples(SampleOptions{Rate: 1})
	s.Add(ex)
	if n := testing.AllocsPerRun(1000, func() { s.Add(ex) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	var off *Samples
	if n := testing.AllocsPerRun(1000, func() { off.Add(ex) }); n != 0 {
		t.Errorf("%v allocations when recording is off", n)
	}
}
