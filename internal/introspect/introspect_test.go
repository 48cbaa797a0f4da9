package introspect

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/dialguard"
)

// answer is the introspection response of a small schema.
const answer = `{"data":{"__schema":{"queryType":{"name":"Query"},"mutationType":null,"subscriptionType":null,"directives":[],"types":[
	{"kind":"OBJECT","name":"Query","fields":[{"name":"hello","args":[],"type":{"kind":"SCALAR","name":"String"},"isDeprecated":false}],"interfaces":[]},
	{"kind":"SCALAR","name":"String"},{"kind":"SCALAR","name":"Boolean"}]}}}`

var anywhere = dialguard.Policy{Private: true}

func serve(t *testing.T, handler http.HandlerFunc) string {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func says(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hang does not respond until the caller is gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the connection is watched only after the body was read
	<-r.Context().Done()
}

func TestTheSchemaOfAnUpstreamIsFetched(t *testing.T) {
	var got *http.Request
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		var sent struct{ Query, OperationName string }
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || sent.OperationName != "Introspection" || !strings.Contains(sent.Query, "isOneOf") {
			t.Errorf("sent %+v, %v", sent, err)
		}
		says(200, "application/json", answer)(w, r)
	})
	text, err := Fetch(t.Context(), Source{URL: url + "/graphql?x=1", Headers: map[string]string{"X-Api-Key": "s3cret", "content-type": "text/html"}, Addresses: anywhere})
	if err != nil || !strings.Contains(text, "type Query {") || !strings.Contains(text, "hello: String") {
		t.Fatalf("%q, %v", text, err)
	}
	if got.Method != "POST" || got.URL.String() != "/graphql?x=1" || got.Header.Get("X-Api-Key") != "s3cret" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("called %s %s with %v", got.Method, got.URL, got.Header)
	}
}

// TestOlderServersGetSimplerQueries refuses, as a validating server does, the additions
// of each release of the specification.
func TestTheSchemaForFederationIsFetched(t *testing.T) {
	const denied = `{"errors":[{"message":"who are you"}]}`
	for _, c := range []struct {
		status     int
		body, want string
		cause      Cause
	}{
		{200, `{"data":{"_service":{"sdl":"type Query { a: Int }"}}}`, "type Query { a: Int }", ""},
		{200, `{"data":{"_service":{"sdl":""}}}`, "its answer to { _service { sdl } } has no text", NoSDL},
		{200, `{"data":null,"errors":[{"message":"no\n such field"}]}`, "it does not report its schema for federation, { _service { sdl } }: no such field", NoSDL},
		{400, `{"errors":[{"message":"no such field"}]}`, "no such field", NoSDL},
		{200, `{"data":{"_service":{"sdl":7}}}`, "no GraphQL answer", NotGraphQL},
		{401, denied, "it answers 401: who are you", Denied},
		{403, `<html>`, "it answers 403 Forbidden", Denied},
		{302, ``, "redirection", BadStatus},
		{503, `{}`, "it answers 503", BadStatus},
		{200, `<html>`, "no GraphQL answer", NotGraphQL},
		{200, `{"data":{"_service":{"sdl":"` + strings.Repeat("x", MaxAnswer) + `"}}}`, "larger than 16 MiB", TooLarge},
	} {
		got, err := FetchSubgraph(t.Context(), Source{URL: serve(t, says(c.status, "application/json", c.body)), Addresses: anywhere})
		wrong, failed := errors.AsType[*Error](err)
		if failed != (c.cause != "") || failed && (wrong.Cause != c.cause || !strings.Contains(wrong.Message, c.want)) || !failed && got != c.want {
			t.Errorf("%d %.60s: %q, %v", c.status, c.body, got, err)
		}
	}
	if _, err := FetchSubgraph(t.Context(), Source{URL: serve(t, hang)}); err == nil || !strings.Contains(err.Error(), "must not be called") {
		t.Error(err)
	}
}

func TestOlderServersGetSimplerQueries(t *testing.T) {
	for _, c := range []struct {
		unknown []string
		calls   int
	}{
		{nil, 1},
		{[]string{"isOneOf"}, 2},
		{[]string{"isOneOf", "inputFields(includeDeprecated"}, 3},
		{[]string{"isOneOf", "inputFields(includeDeprecated", "specifiedByURL", "isRepeatable"}, 4},
	} {
		calls := 0
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			calls++
			body, _ := io.ReadAll(r.Body)
			for _, name := range c.unknown {
				if strings.Contains(string(body), name) {
					says(400, "application/json", `{"errors":[{"message":"Cannot query field `+strings.Trim(name, "(")+`"}]}`)(w, r)
					return
				}
			}
			says(200, "application/json", answer)(w, r)
		})
		if text, err := Fetch(t.Context(), Source{URL: url, Addresses: anywhere}); err != nil || text == "" || calls != c.calls {
			t.Errorf("without %v: %d calls, %v", c.unknown, calls, err)
		}
	}
}

func TestEachFailureNamesItsCause(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + ln.Addr().String()
	ln.Close()
	selfSigned := httptest.NewTLSServer(says(200, "application/json", answer))
	t.Cleanup(selfSigned.Close)
	plain := serve(t, says(200, "application/json", answer))
	for _, c := range []struct {
		name    string
		from    Source
		cause   Cause
		message string
	}{
		{"scheme", Source{URL: "ftp://x"}, Unusable, "http://"},
		{"nobody there", Source{URL: closed}, Unreachable, "connection refused"},
		{"no such name", Source{URL: "http://no-such-host.invalid/"}, UnknownHost, "no-such-host.invalid"},
		{"metadata", Source{URL: "http://169.254.169.254/latest"}, Forbidden, "169.254.169.254"},
		{"slow", Source{URL: serve(t, hang), Timeout: 100 * time.Millisecond}, TooSlow, "100ms"},
		{"unknown authority", Source{URL: selfSigned.URL}, BadTLS, "certificate"},
		{"no TLS there", Source{URL: strings.Replace(plain, "http", "https", 1)}, BadTLS, "TLS"},
		{"401", Source{URL: serve(t, says(401, "text/plain", "who?"))}, Denied, "401"},
		{"403 with errors", Source{URL: serve(t, says(403, "application/json", `{"errors":[{"message":"no token"}]}`))}, Denied, "no token"},
		{"redirection", Source{URL: serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })}, BadStatus, "redirection"},
		{"500", Source{URL: serve(t, says(500, "text/html", "<h1>"))}, BadStatus, "500"},
		{"404", Source{URL: serve(t, says(404, "application/json", `{"error":"x"}`))}, BadStatus, "404"},
		{"HTML", Source{URL: serve(t, says(200, "text/html; charset=utf-8", "<html>"))}, NotGraphQL, "text/html"},
		{"empty", Source{URL: serve(t, says(200, "", ""))}, NotGraphQL, "empty"},
		{"other JSON", Source{URL: serve(t, says(200, "application/json", `{"hello":1}`))}, NotGraphQL, `without "data"`},
		{"null", Source{URL: serve(t, says(200, "application/json", `{"data":{"__schema":null}}`))}, NotGraphQL, ""},
		{"no schema in it", Source{URL: serve(t, says(200, "application/json", `{"data":{"__schema":{"types":7}}}`))}, NotGraphQL, "cannot be read"},
		{"disabled", Source{URL: serve(t, says(200, "application/json", `{"errors":[{"message":"GraphQL introspection is not allowed by Apollo Server, but the query contained __schema or __type."}]}`))}, Disabled, "switched off"},
		{"disabled too", Source{URL: serve(t, says(400, "application/json", `{"data":null,"errors":[{"message":"GraphQL introspection has been disabled, but the requested query contained the field \"__schema\"."}]}`))}, Disabled, "switched off"},
		{"refused", Source{URL: serve(t, says(200, "application/json", `{"errors":[{"message":"query too\ndeep"}]}`))}, Refused, "query too deep"},
		{"cut off", Source{URL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		})}, Unreachable, "broke"},
		{"too large", Source{URL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for range MaxAnswer>>20 + 1 {
				_, _ = w.Write(chunk)
			}
		})}, TooLarge, "16 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.from.Addresses = anywhere
			c.from.Headers = map[string]string{"Authorization": "s3cret"}
			text, err := Fetch(t.Context(), c.from)
			e, ok := errors.AsType[*Error](err)
			if !ok || text != "" {
				t.Fatalf("%q, %v", text, err)
			}
			if e.Cause != c.cause || !strings.Contains(e.Message, c.message) {
				t.Errorf("cause %s: %s; want %s with %q", e.Cause, e.Message, c.cause, c.message)
			}
			if e.Remedy() == "" || strings.Contains(e.Error(), "s3cret") || strings.Contains(e.Error(), "\n") {
				t.Errorf("%s; %s", e.Error(), e.Remedy())
			}
		})
	}
}

func TestPrivateAddressesAreCalledOnlyWhereThatIsAllowed(t *testing.T) {
	url := serve(t, says(200, "application/json", answer))
	_, err := Fetch(t.Context(), Source{URL: url})
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Cause != Forbidden || !strings.Contains(e.Message, "127.0.0.1") || !strings.Contains(e.Remedy(), "admin.private_upstreams") {
		t.Errorf("%v; %s", err, e.Remedy())
	}
	if _, err := Fetch(t.Context(), Source{URL: strings.Replace(url, "127.0.0.1", "localhost", 1)}); err == nil {
		t.Error("a name leads to a private address")
	}
}

func TestFetchingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { cancel(); hang(w, r) })
	if _, err := Fetch(ctx, Source{URL: url, Addresses: anywhere}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestTheCertificatesOfTheDefinitionAreShownAndTrusted(t *testing.T) {
	dir := t.TempDir()
	client, clientPEM := certificate(t, "client")
	server := httptest.NewUnstartedServer(says(200, "application/json", answer))
	clients := x509.NewCertPool()
	clients.AddCert(client)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	own, empty := write("client.pem", clientPEM), write("empty.pem", nil)
	host := strings.TrimPrefix(server.URL, "https://")
	for _, c := range []struct {
		name   string
		change func(*definition.API)
		caFile string
		want   string // in the error; "": none
	}{
		{"by host", func(a *definition.API) { a.UpstreamCertificates = map[string]string{host: own, "*": empty} }, ca, ""},
		{"for all", func(a *definition.API) { a.UpstreamCertificates = map[string]string{"*": own, "elsewhere": empty} }, ca, ""},
		{"of the transport", func(a *definition.API) {
			a.Proxy.Transport = &definition.Transport{CAFile: ca, CertificateFile: own, KeyFile: own, MinVersion: "1.3"}
		}, empty, ""},
		{"not checked", func(a *definition.API) {
			a.Proxy.Transport = &definition.Transport{InsecureSkipVerify: true, CertificateFile: own, KeyFile: own}
		}, "", ""},
		{"none shown", func(*definition.API) {}, ca, "TLS: "},
		{"not trusted", func(a *definition.API) { a.UpstreamCertificates = map[string]string{"*": own} }, "", "TLS: "},
		{"wrong name", func(a *definition.API) {
			a.Proxy.Transport = &definition.Transport{CAFile: ca, CertificateFile: own, KeyFile: own, ServerName: "other.example.org"}
		}, "", "other.example.org"},
		{"no file", func(a *definition.API) { a.UpstreamCertificates = map[string]string{"*": "/nowhere.pem"} }, ca, `upstream_certificates["*"]: open /nowhere.pem`},
		{"no authorities", func(*definition.API) {}, empty, "upstream.ca_file: "},
		{"no key", func(a *definition.API) { a.Proxy.Transport = &definition.Transport{CertificateFile: own} }, ca, "ssl_key_file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := &definition.API{Proxy: definition.Proxy{TargetURL: server.URL}}
			c.change(api)
			from, err := SourceOf(api, c.caFile)
			if err == nil {
				from.Addresses = anywhere
				_, err = Fetch(t.Context(), from)
			}
			e, _ := errors.AsType[*Error](err)
			if (err == nil) != (c.want == "") || err != nil && (e == nil || e.Cause != BadTLS || !strings.Contains(e.Message, c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestASourceNeedsAnHTTPTarget(t *testing.T) {
	for _, target := range []string{"", "svc://other", "http://", "://", "mailto:x"} {
		if _, err := SourceOf(&definition.API{Proxy: definition.Proxy{TargetURL: target}}, ""); err == nil {
			t.Errorf("%q is a source", target)
		}
	}
	api := &definition.API{Proxy: definition.Proxy{TargetURL: "http://up.example"}, GraphQL: &definition.GraphQL{Proxy: &definition.GraphQLProxy{
		AuthHeaders: map[string]string{"A": "1"}, RequestHeaders: map[string]string{"B": "2"},
	}}}
	if from, err := SourceOf(api, ""); err != nil || len(from.Headers) != 1 || from.Headers["A"] != "1" {
		t.Errorf("%v, %v", from.Headers, err)
	}
}

// certificate makes a certificate that signed itself, and its PEM with the key.
func certificate(t *testing.T, name string) (*x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
}
