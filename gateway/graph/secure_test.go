package graph_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestSourcesAreCalledByTheTLSSettingsOfTheAPI(t *testing.T) {
	authority, dir := testenv.NewAuthority(t, "a"), t.TempDir()
	client := authority.Client("graph")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca, own := write("ca.pem", authority.PEM()), write("own.pem", client.CertPEM+client.KeyPEM)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"city":"`+r.TLS.PeerCertificates[0].Subject.CommonName+`"}`)
	}))
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{authority.Server("127.0.0.1", "inside.test").TLS}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.Pool()}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	w := newWorld(t)
	const works, fails = `{"data":{"strict":{"city":"graph"}}}`, `it cannot be reached`
	for _, c := range []struct {
		name         string
		transport    definition.Transport
		certificates map[string]string
		want         string
	}{
		{"all of it", definition.Transport{CAFile: ca}, map[string]string{"*": own}, works},
		{"the certificate as a file", definition.Transport{CAFile: ca, CertificateFile: own, KeyFile: own}, nil, works},
		{"without a certificate", definition.Transport{CAFile: ca}, nil, fails},
		{"roots of the system", definition.Transport{}, map[string]string{"*": own}, fails},
		{"another name of the server", definition.Transport{CAFile: ca, ServerName: "inside.test"}, map[string]string{"*": own}, works},
		{"a wrong name", definition.Transport{CAFile: ca, ServerName: "outside.test"}, map[string]string{"*": own}, fails},
		{"nothing is checked", definition.Transport{InsecureSkipVerify: true}, map[string]string{"*": own}, works},
	} {
		w.apply(c.name, func(api *definition.API) {
			api.Proxy.Transport, api.UpstreamCertificates = &c.transport, c.certificates
			for i := range api.GraphQL.Engine.DataSources {
				if s := &api.GraphQL.Engine.DataSources[i]; s.Name == "strict" {
					s.Config.URL = secure.URL + "/x"
				}
			}
		})
		if _, got := w.ask(`{ strict { city } }`); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// The credential goes on unless it is stripped, and by the name that it came under.
func TestCredentialsGoToSourcesUnlessTheyAreStripped(t *testing.T) {
	w := newWorld(t)
	w.Put("secret-key", &definition.Session{AccessRights: map[string]*definition.Access{"graph": {}}})
	for _, strip := range []bool{false, true} {
		for _, own := range []bool{false, true} {
			w.apply(map[bool]string{false: "goes on", true: "stripped"}[strip]+map[bool]string{true: ", its own"}[own], func(api *definition.API) {
				api.UseKeyless, api.UseStandardAuth, api.StripAuthData = false, true, strip
				if own {
					api.GraphQL.Engine.GlobalHeaders = append(api.GraphQL.Engine.GlobalHeaders, definition.GraphQLEngineHeader{Key: "authorization", Value: "of the graph"})
				}
			})
			w.asked()
			if status, got := w.post(`{"query":"{ me { name score } }"}`, http.Header{"Authorization": {"secret-key"}}); status != 200 {
				t.Fatal(got)
			}
			want := map[bool]string{false: "secret-key"}[strip]
			if own {
				want = "of the graph"
			}
			w.mu.Lock()
			for _, c := range w.calls {
				if got := strings.Join(c.header["Authorization"], ","); got != want {
					t.Errorf("stripped %v, own %v: %s has %q, want %q", strip, own, c.line, got, want)
				}
			}
			w.mu.Unlock()
			if n := len(w.asked()); n != 2 {
				t.Errorf("%d requests", n)
			}
		}
	}
}

func TestListsOfSourcesAreBounded(t *testing.T) {
	w := newWorld(t)
	list := make([]any, 10_001)
	for i := range list {
		list[i] = user(strconv.Itoa(i), "Ada", "Ulm")
	}
	w.does("/users", graphQL(map[string]any{"users": list}))
	w.asked()
	_, got := w.ask(`{ users { score } }`)
	if !strings.HasPrefix(got, `{"errors":[{"message":"data source \"scores\": the list has more than 10000 objects","path":["users","score"]}],"data":{"users":[{"score":null}`) {
		t.Errorf("%.300s", got)
	}
	if asked := w.asked(); len(asked) != 1 {
		t.Errorf("%d requests", len(asked))
	}
}
