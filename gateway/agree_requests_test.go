package gateway_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A generator makes requests, most of them sensible.
type generator struct{ *rand.Rand }

// described is a request as explanations take it. chunked is how its body is
// sent.
type described struct {
	Method  string   `json:"method"`
	URL     string   `json:"url"`
	Headers []string `json:"headers,omitempty"`
	Body    string   `json:"body,omitempty"`
	Client  string   `json:"client,omitempty"`
	KeyHash string   `json:"key_hash,omitempty"`

	chunked bool
}

func pick[T any](g *generator, all ...T) T { return all[g.IntN(len(all))] }

// one in n.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func (g *generator) request() *described {
	d := &described{Method: pick(g, "GET", "GET", "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "UPDATE")}
	prefix := pick(g, "open", "rest", "rest", "norate", "param", "gql", "gql", "gql", "gqlopen", "trusted", "stored", "versions", "versions",
		"sized", "kept", "users", "tokens", "allowed", "blocked", "cors", "shared", "rewritten", "before", "keyed", "round", "astray", "family", "family", "ahead", "aheadinside", "aheadgql", "aheadstored", "aheadform", "form", "signers", "faulty", "unschemed", "inactive", "nowhere")
	path := pick(g, "", "/", "/items", "/items/7", "/items/7?x=1", "/free", "/secret", "/mock", "/ok", "/ok/1", "/country/DE", "/country/x%20y",
		"/deep", "/from/a/b", "/a%2Fb", "/a//b")
	d.URL = "/" + prefix + path
	g.damage(d)
	g.credential(d, prefix)
	switch prefix {
	case "gql", "gqlopen", "trusted", "aheadgql":
		g.graphQL(d)
	case "form", "aheadform":
		g.form(d)
	case "rewritten":
		if !g.one(3) {
			d.Headers = append(d.Headers, "X-To: "+pick(g, "far", "in", "open", "own"))
		}
	case "family":
		if !g.one(3) {
			d.Headers = append(d.Headers, "X-Version: "+pick(g, "v1", "v2", "v3", "self", "old", "v9", ""))
		}
	case "versions", "ahead":
		if g.one(4) {
			d.Headers = append(d.Headers, "Connection: "+pick(g, "x-version", "X-Own, authorization", "keep-alive"))
		}
		if !g.one(3) {
			d.Headers = append(d.Headers, "X-Version: "+pick(g, "v1", "v2", "old", "v9", ""))
		}
	case "cors":
		g.browser(d)
	case "allowed", "blocked":
		if !g.one(3) {
			d.Headers = append(d.Headers, "X-Forwarded-For: "+pick(g, "203.0.113.9", "203.0.113.10", "198.51.100.1", "nonsense"))
		}
	}
	if d.Body == "" && (d.Method == "POST" || d.Method == "PUT" || g.one(15)) {
		g.body(d)
	}
	return d
}

// damage makes some paths and hosts such that they are refused.
func (g *generator) damage(d *described) {
	switch g.IntN(120) {
	case 0:
		d.URL += "/../x"
	case 1:
		d.URL += "/%zz"
	case 2:
		d.URL += "/%00"
	case 3:
		d.URL += "/" + strings.Repeat("x", 1100)
	case 4:
		for range 25 {
			d.Headers = append(d.Headers, "X-Many: 1")
		}
	case 5:
		d.Headers = append(d.Headers, "X-Large: "+strings.Repeat("y", 4200))
	case 6:
		d.Headers = append(d.Headers, "Bad Name: 1")
	case 7:
		d.Headers = append(d.Headers, "Host: a", "Host: b")
	case 8:
		d.Headers = append(d.Headers, "Expect: something")
	case 9:
		d.Headers = append(d.Headers, "X-Control: a\x01b")
	case 10:
		d.URL = "http://other.example" + d.URL
	}
}

func (g *generator) credential(d *described, prefix string) {
	keys := []string{
		"key-of-nobody", "k", "key-of-all", "key-of-all", "key-of-all", "key-of-slow", "key-of-slow", "key-of-small", "key-of-off", "key-of-narrow",
		"key-of-narrow", "key-of-missing", "key-of-master", "key-of-itself", "key-of-expired", "key-of-inactive",
	}
	key := pick(g, keys...)
	switch {
	case g.one(12):
	case prefix == "users":
		pair := pick(g, "ann:right", "ann:right", "ann:right", "bob:right", "ann", "")
		if g.one(100) {
			pair = "ann:wrong" // the answer is late on purpose
		}
		d.Headers = append(d.Headers, "Authorization: "+pick(g, "Basic ", "Basic ", "Bearer ")+base64.StdEncoding.EncodeToString([]byte(pair)))
	case prefix == "form" || prefix == "aheadform":
	case prefix == "tokens" || prefix == "signers":
		d.Headers = append(d.Headers, "Authorization: "+pick(g, "", "Bearer ")+g.token())
	case prefix == "param" && g.one(2):
		between := "?"
		if strings.Contains(d.URL, "?") {
			between = "&"
		}
		d.URL += between + "key=" + key
	case prefix == "param":
		d.Headers = append(d.Headers, "Cookie: a=b; token="+key)
	default:
		d.Headers = append(d.Headers, "Authorization: "+pick(g, "", "", "Bearer ", "bearer ")+key)
	}
}

// token makes a JSON Web Token, of which something may be wrong.
func (g *generator) token() string {
	head := pick(g, `{"alg":"HS256"}`, `{"alg":"HS256"}`, `{"alg":"HS256"}`, `{"alg":"none"}`, `{"alg":"RS256"}`, `{`,
		`{"alg":"HS256","kid":"key-of-signer"}`, `{"alg":"HS256","kid":"key-of-signer"}`, `{"alg":"HS256","kid":"key-of-late"}`, `{"alg":"HS256","kid":"key-of-all"}`,
		`{"alg":"HS256","kid":"ann"}`, `{"alg":"HS256","kid":"../\\u0000' OR 1=1"}`, `{"alg":"RS256","kid":"key-of-signer"}`, `{"alg":"none","kid":"key-of-signer"}`)
	claims := fmt.Sprintf(pick(g, `{"sub":"u%d"}`, `{"sub":"u%d","exp":4000000000}`, `{"sub":"u%d","exp":1000}`, `{"sub":"u%d","nbf":4000000000}`,
		`{"sub":"u%d","pol":"narrow"}`, `{"sub":"u%d","pol":"gone"}`, `{"n":%d}`), g.IntN(5))
	text := signedToken(head, claims, pick(g, "secret-of-tokens-of-32-bytes-or-more", "secret-of-tokens-of-32-bytes-or-more", "another"))
	if g.one(10) {
		text = text[:len(text)-g.IntN(30)]
	}
	return text
}

// signedToken makes a token of a header and claims, which HMAC signs.
func signedToken(head, claims, secret string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(head)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (g *generator) browser(d *described) {
	if g.one(4) {
		return
	}
	d.Headers = append(d.Headers, "Origin: "+pick(g, "https://a.example", "https://b.example"))
	if g.one(2) {
		d.Method = "OPTIONS"
		d.Headers = append(d.Headers, "Access-Control-Request-Method: "+pick(g, "GET", "DELETE"))
		if g.one(2) {
			d.Headers = append(d.Headers, "Access-Control-Request-Headers: "+pick(g, "x-one", "x-two"))
		}
	}
}

func (g *generator) body(d *described) {
	d.Body = strings.Repeat("z", pick(g, 1, 10, 64, 65, 1000, 9000, 20_000, 33_000))
	d.Headers = append(d.Headers, "Content-Type: "+pick(g, "text/plain", "application/json", "text/xml; charset=utf-8"))
	g.chunk(d)
}

// form makes a body with a name and a password, which may be wrong, or deep in it.
func (g *generator) form(d *described) {
	if d.Method = pick(g, "POST", "POST", "PUT"); g.one(10) {
		return
	}
	d.Body = strings.Repeat("z", pick(g, 0, 0, 10, 9000, 20_000)) + pick(g, "user=ann&password=right", "password=right&user=ann", "user=bob&password=right", "user=ann", "password=right", "user=&password=")
	g.chunk(d)
}

func (g *generator) chunk(d *described) {
	if g.one(10) {
		d.chunked = true
		d.Headers = append(d.Headers, "Transfer-Encoding: chunked")
	}
}

var operations = []string{
	`{ countries { name } }`, `{ country(code: "DE") { name continent { code } } }`, `query Q { countries { population } }`, `{ secret }`,
	`{ countries { continent { countries { continent { countries { code } } } } } }`, `{ __schema { types { name } } }`, `{ __typename }`,
	`{ a: secret b: secret c: secret }`, `mutation { rename(code: "1", name: "x") { code } }`, `{ animal { name ... on Cat { lives } } }`,
	`query ($c: ID!) { country(code: $c) { name } }`, `query A { secret } query B { countries { code } }`,
	`{ nothing }`, `{ countries { name `, ``, `{ country { name } }`, `{ countries { name { x } } }`, `subscription { x }`, "{ countries\n{\n  nope } }",
}

func (g *generator) operation() map[string]any {
	m := map[string]any{}
	if !g.one(30) {
		m["query"] = pick(g, operations...)
	}
	if g.one(8) {
		m["query"] = fmt.Sprintf("{ c%d: countries { name %s } }", g.IntN(1000), strings.Repeat("code ", g.IntN(400)))
	}
	if g.one(4) {
		m["operationName"] = pick(g, "A", "B", "Q", "None", "")
	}
	if g.one(4) {
		m["variables"] = pick[any](g, map[string]any{"c": "DE"}, map[string]any{"c": 1.5}, nil, "text", map[string]any{})
	}
	return m
}

// graphQL makes a request for operations.
func (g *generator) graphQL(d *described) {
	d.URL, _, _ = strings.Cut(d.URL, "?")
	if g.one(6) {
		return // whatever it is already
	}
	if g.one(6) {
		d.Method = pick(g, "GET", "HEAD")
		escape := strings.NewReplacer(" ", "%20", "{", "%7B", "}", "%7D", `"`, "%22", "\n", "%0A")
		d.URL += "?query=" + escape.Replace(pick(g, operations...))
		return
	}
	d.Method = "POST"
	var sent any = g.operation()
	if g.one(5) {
		list := []any{}
		for range g.IntN(5) {
			list = append(list, g.operation())
		}
		sent = list
	}
	text, err := json.Marshal(sent)
	if err != nil {
		panic(err)
	}
	d.Body = string(text)
	if g.one(40) {
		d.Body = d.Body[:len(d.Body)/2]
	}
	if g.one(20) {
		d.Body += strings.Repeat(" ", pick(g, 9000, 17_000, 33_000))
	}
	if !g.one(20) {
		d.Headers = append(d.Headers, "Content-Type: "+pick(g, "application/json", "application/json", "application/json; charset=utf-8", "text/plain"))
	}
	if g.one(4) {
		d.Headers = append(d.Headers, "Accept: "+pick(g, "application/json", "application/graphql-response+json", "text/html", "text/event-stream", "*/*"))
	}
	g.chunk(d)
}
