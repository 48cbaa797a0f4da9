package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// Documents are sent by their hashes, and bounded to trusted ones, on a connection as over
// HTTP: what is refused there is refused here for the same reason.
func TestDocumentsOnAConnectionAreThoseOfHTTP(t *testing.T) {
	s := withSockets(t)
	pair := func(text string) string { return fmt.Sprintf("%q:%q", sumOf(text), text) }
	apis := make([]*definition.API, 0, 2)
	for id, more := range map[string]string{
		"ws":     `"trusted_documents":{"register":true}`,
		"events": `"trusted_documents":{"required":true,"documents":{` + pair("{a}") + `,` + pair("subscription{count(to:3)}") + `}}`,
	} {
		def, err := definition.ParseAPI(fmt.Appendf(nil, `{"api_id":%[1]q,"name":%[1]q,"org_id":"o","proxy":{"listen_path":"/%[1]s/","target_url":%[2]q,"strip_listen_path":true},
			"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":%[3]q,"proxy":{"subscription_type":"graphql-transport-ws"},%[4]s}}`, id, s.upstream.URL, socketSchema, more))
		if err != nil {
			t.Fatal(err)
		}
		apis = append(apis, def)
	}
	s.MustLoad(apis...)
	s.key("key", keyOfAll)
	hashed := func(text string) string {
		return `"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + sumOf(text) + `"}}`
	}
	const counted = `{"id":"1","type":"next","payload":{"data":{"count":1}}}`
	for _, c := range []struct {
		name, path, payload string
		first               string // of a result; "": the errors of HTTP
	}{
		{"a hash that nobody knows", "/ws/", `{` + hashed("{a}") + `}`, ""},
		{"a document with a wrong hash", "/ws/", `{"query":"{secret}",` + hashed("{a}") + `}`, ""},
		{"a document with its hash", "/ws/", `{"query":"{a}",` + hashed("{a}") + `}`, `"type":"next"`},
		{"a hash alone", "/ws/", `{` + hashed("{a}") + `}`, `"type":"next"`},
		{"a subscription with its hash", "/ws/", `{"query":"subscription{count(to:3)}",` + hashed("subscription{count(to:3)}") + `}`, counted},
		{"a subscription by its hash", "/ws/", `{` + hashed("subscription{count(to:3)}") + `}`, counted},
		{"a trusted document", "/events/", `{"query":"{a}"}`, `"type":"next"`},
		{"the hash of a trusted document", "/events/", `{` + hashed("{a}") + `}`, `"type":"next"`},
		{"a trusted subscription by its hash", "/events/", `{` + hashed("subscription{count(to:3)}") + `}`, counted},
		{"another document", "/events/", `{"query":"{secret}"}`, ""},
		{"another subscription", "/events/", `{"query":"subscription{secret}"}`, ""},
		{"the hash of another document", "/events/", `{` + hashed("{secret}") + `}`, ""},
	} {
		got := s.dial(c.path, "graphql-transport-ws", "key").greets().say(`{"id":"1","type":"subscribe","payload":` + c.payload + `}`).hears()
		if c.first != "" {
			if !strings.Contains(got, c.first) {
				t.Errorf("%s: %s", c.name, got)
			}
			continue
		}
		if over := s.errorsOverHTTP(c.path, c.payload); len(over) < 5 || messagesOf(t, got) != over {
			t.Errorf("%s: %s, over HTTP %s", c.name, got, over)
		}
	}
}

// errorsOverHTTP returns the messages of the errors of a POST.
func (s *sockets) errorsOverHTTP(path, body string) string {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+s.Addr+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"key"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var refusal struct {
		Error  string
		Errors []struct{ Message string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&refusal); err != nil {
		s.t.Fatal(err)
	}
	if refusal.Error != "" {
		return "[{" + refusal.Error + "}]"
	}
	return fmt.Sprint(refusal.Errors)
}

// messagesOf returns the messages of an error for an operation.
func messagesOf(t *testing.T, text string) string {
	t.Helper()
	var m struct {
		Type    string
		Payload []struct{ Message string }
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Type != "error" {
		t.Errorf("%s: %v", text, err)
	}
	return fmt.Sprint(m.Payload)
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
