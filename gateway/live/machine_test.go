package live

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// told is a step as tests write it.
func told(s Step) string {
	var parts []string
	if len(s.Send) > 0 {
		parts = append(parts, "send "+string(s.Send))
	}
	switch s.Do {
	case Init:
		parts = append(parts, "init "+string(s.Payload))
	case Start:
		parts = append(parts, fmt.Sprintf("start %s %s", s.ID, s.Payload))
	case Stop:
		parts = append(parts, "stop "+string(s.ID))
	case Close:
		parts = append(parts, fmt.Sprintf("close %d %s", s.Code, s.Reason))
	}
	return strings.TrimSpace(strings.Join(parts, ", "))
}

const (
	hello = `{"type":"connection_init"}`
	query = `{"query":"{a}"}`
	sub1  = `{"id":"1","type":"subscribe","payload":` + query + `}`
	old1  = `{"id":"1","type":"start","payload":` + query + `}`
	over1 = "the gateway completes operation 1"
)

// Every row of the state table: what the client has sent before, its message, and what
// follows.
func TestStates(t *testing.T) {
	for _, row := range []struct {
		name     string
		protocol Protocol
		before   []string
		message  string
		want     string
	}{
		{"init", TransportWS, nil, `{"type":"connection_init","payload":{"a":1}}`, `init {"a":1}`},
		{"init without payload", TransportWS, nil, hello, `init`},
		{"init with null", TransportWS, nil, `{"type":"connection_init","payload":null}`, `init`},
		{"second init", TransportWS, []string{hello}, hello, "close 4429 Too many initialisation requests"},
		{"subscribe", TransportWS, []string{hello}, sub1, "start 1 " + query},
		{"subscribe before init", TransportWS, nil, sub1, "close 4401 Unauthorized"},
		{"subscribe with an id in use", TransportWS, []string{hello, sub1}, sub1, "close 4409 Subscriber for 1 already exists"},
		{"subscribe with an id that is free again", TransportWS, []string{hello, sub1, `{"id":"1","type":"complete"}`}, sub1, "start 1 " + query},
		{"subscribe with an id whose operation is complete", TransportWS, []string{hello, sub1, over1}, sub1, "start 1 " + query},
		{"complete that crosses ours", TransportWS, []string{hello, sub1, over1}, `{"id":"1","type":"complete"}`, ""},
		{"one operation too many", TransportWS, []string{hello, sub1, strings.Replace(sub1, "1", "2", 1)}, strings.Replace(sub1, "1", "3", 1), `send {"id":"3","type":"error","payload":[{"message":"Too many operations are active on this connection."}]}`},
		{"complete", TransportWS, []string{hello, sub1}, `{"id":"1","type":"complete"}`, "stop 1"},
		{"complete of none", TransportWS, []string{hello}, `{"id":"1","type":"complete"}`, ""},
		{"complete without id", TransportWS, []string{hello}, `{"type":"complete"}`, "close 4400 Message is missing the 'id' property"},
		{"escapes in an id", TransportWS, []string{hello, sub1}, `{"id":"\u0031","type":"complete"}`, "stop 1"},
		{"ping", TransportWS, nil, `{"type":"ping"}`, `send {"type":"pong"}`},
		{"ping with payload", TransportWS, []string{hello}, `{"type":"ping","payload":{"at":[1, 2]}}`, `send {"type":"pong","payload":{"at":[1, 2]}}`},
		{"pong", TransportWS, []string{hello}, `{"type":"pong"}`, ""},
		{"unknown type", TransportWS, []string{hello}, `{"type":"begin"}`, "close 4400 Invalid type 'begin'"},
		{"type of the other protocol", TransportWS, []string{hello}, old1, "close 4400 Invalid type 'start'"},
		{"type of a server", TransportWS, []string{hello, sub1}, `{"id":"1","type":"next","payload":{}}`, "close 4400 Invalid type 'next'"},
		{"unknown type before init", TransportWS, nil, `{"type":"begin"}`, "close 4400 Invalid type 'begin'"},
		{"no type", TransportWS, []string{hello}, `{"id":"1"}`, "close 4400 Invalid type ''"},
		{"no JSON", TransportWS, []string{hello}, `subscribe`, "close 4400 JSON syntax error"},
		{"half a message", TransportWS, []string{hello}, sub1[:20], "close 4400 JSON syntax error"},
		{"two messages", TransportWS, []string{hello}, sub1 + sub1, "close 4400 JSON syntax error"},
		{"an array", TransportWS, []string{hello}, `[` + sub1 + `]`, "close 4400 JSON syntax error"},
		{"id that is a number", TransportWS, []string{hello}, `{"id":1,"type":"subscribe","payload":{}}`, "close 4400 JSON syntax error"},
		{"empty id", TransportWS, []string{hello}, `{"id":"","type":"subscribe","payload":{}}`, "close 4400 Message is missing the 'id' property"},
		{"long id", TransportWS, []string{hello}, `{"id":"` + strings.Repeat("x", 257) + `","type":"subscribe","payload":{}}`, "close 4400 The 'id' property is too long"},
		{"no payload", TransportWS, []string{hello}, `{"id":"1","type":"subscribe"}`, "close 4400 Message is missing the 'payload' property"},
		{"payload that is a text", TransportWS, []string{hello}, `{"id":"1","type":"subscribe","payload":"{a}"}`, "close 4400 Message is missing the 'payload' property"},
		{"nested too deep", TransportWS, []string{hello}, `{"id":"1","type":"subscribe","payload":{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}}`, "close 4400 JSON syntax error"},

		{"old: init", Legacy, nil, hello, `init`},
		{"old: second init", Legacy, []string{hello}, hello, ""},
		{"old: start", Legacy, []string{hello}, old1, "start 1 " + query},
		{"old: start before init", Legacy, nil, old1, "close 4401 Unauthorized"},
		{"old: start with an id in use", Legacy, []string{hello, old1}, old1, "close 4409 Subscriber for 1 already exists"},
		{"old: start with an id that is free again", Legacy, []string{hello, old1, `{"id":"1","type":"stop"}`}, old1, "start 1 " + query},
		{"old: start with an id whose operation is complete", Legacy, []string{hello, old1, over1}, old1, "start 1 " + query},
		{"old: stop that crosses our complete", Legacy, []string{hello, old1, over1}, `{"id":"1","type":"stop"}`, ""},
		{"old: stop without id", Legacy, []string{hello, old1}, `{"type":"stop"}`, "close 4400 Message is missing the 'id' property"},
		{"old: stop", Legacy, []string{hello, old1}, `{"id":"1","type":"stop"}`, `send {"id":"1","type":"complete"}, stop 1`},
		{"old: stop of none", Legacy, []string{hello}, `{"id":"1","type":"stop"}`, ""},
		{"old: terminate", Legacy, []string{hello}, `{"type":"connection_terminate"}`, "close 1000"},
		{"old: terminate before init", Legacy, nil, `{"type":"connection_terminate"}`, "close 1000"},
		{"old: type of the other protocol", Legacy, []string{hello}, sub1, "close 4400 Invalid type 'subscribe'"},
		{"old: no JSON", Legacy, []string{hello}, `start`, "close 4400 JSON syntax error"},
		{"old: empty id", Legacy, []string{hello}, `{"id":"","type":"start","payload":{}}`, "close 4400 Message is missing the 'id' property"},
		{"old: no payload", Legacy, []string{hello}, `{"id":"1","type":"start"}`, "close 4400 Message is missing the 'payload' property"},
		{"old: unknown type", Legacy, []string{hello}, `{"type":"ping"}`, "close 4400 Invalid type 'ping'"},
		{"old: one operation too many", Legacy, []string{hello, old1, strings.Replace(old1, "1", "2", 1)}, strings.Replace(old1, "1", "3", 1), `send {"id":"3","type":"error","payload":{"message":"Too many operations are active on this connection."}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := Machine{Protocol: row.protocol, Most: 2}
			for _, before := range row.before {
				if before == over1 {
					m.End([]byte("1"))
				} else if s := m.Text([]byte(before)); s.Do == Init {
					m.Accept()
				}
			}
			if got := told(m.Text([]byte(row.message))); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestMoments(t *testing.T) {
	for _, p := range []Protocol{TransportWS, Legacy} {
		m := Machine{Protocol: p, Most: 1}
		if m.Heartbeat() != nil {
			t.Error("a heartbeat before the connection is acknowledged")
		}
		if got := told(m.InitTimeout()); got != "close 4408 Connection initialisation timeout" {
			t.Error(got)
		}
		if got := told(m.Binary()); got != "close 4400 Only text messages are accepted" {
			t.Error(got)
		}
		m.Text([]byte(hello))
		if got := told(m.InitTimeout()); got != "close 4408 Connection initialisation timeout" {
			t.Errorf("not acknowledged yet: %s", got)
		}
		if got := told(m.Accept()); got != `send {"type":"connection_ack"}` {
			t.Error(got)
		}
		if got := told(m.InitTimeout()); got != "" {
			t.Error(got)
		}
	}
	for p, want := range map[Protocol]string{
		TransportWS: "close 4403 Forbidden", Legacy: `send {"type":"connection_error","payload":{"message":"Forbidden"}}, close 1011 Forbidden`,
	} {
		m := Machine{Protocol: p}
		m.Text([]byte(hello))
		if got := told(m.Refuse(CloseForbidden, "Forbidden")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for p, want := range map[Protocol]string{TransportWS: `{"type":"pong","payload":{"type":"heartbeat"}}`, Legacy: `{"type":"ka"}`} {
		m := Machine{Protocol: p}
		m.Accept()
		if got := string(m.Heartbeat()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestMessagesOfOperations(t *testing.T) {
	id, errs := []byte(`a"b`), []byte(`[{"message":"no"},{"message":"never"}]`)
	for p, want := range map[Protocol][3]string{
		TransportWS: {`{"id":"a\"b","type":"next","payload":{"data":1}}`, `{"id":"a\"b","type":"error","payload":[{"message":"no"},{"message":"never"}]}`, `{"id":"a\"b","type":"complete"}`},
		Legacy:      {`{"id":"a\"b","type":"data","payload":{"data":1}}`, `{"id":"a\"b","type":"error","payload":{"message":"no"}}`, `{"id":"a\"b","type":"complete"}`},
	} {
		m := Machine{Protocol: p}
		got := [3]string{string(m.AppendNext(nil, id, []byte(`{"data":1}`))), string(m.AppendError(nil, id, errs)), string(m.AppendComplete(nil, id))}
		if got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestAnOperationEndsOnce(t *testing.T) {
	m := Machine{Most: 1}
	m.Text([]byte(hello))
	m.Accept()
	m.Text([]byte(sub1))
	if !m.IsActive([]byte("1")) || !m.End([]byte("1")) || m.End([]byte("1")) || m.Active() != 0 {
		t.Error("an operation that has ended is active, or ends again")
	}
}

func TestChoose(t *testing.T) {
	for offered, want := range map[string]string{
		"graphql-transport-ws": "graphql-transport-ws", "graphql-ws": "graphql-ws",
		"soap, graphql-ws , graphql-transport-ws": "graphql-ws", "": "", "soap": "", "GRAPHQL-WS": "", ",": "",
	} {
		p, ok := Choose([]byte(offered))
		if ok != (want != "") || ok && p.String() != want {
			t.Errorf("%q: %s %t, want %q", offered, p, ok, want)
		}
	}
}

// Whatever a client sends, what follows is a message of JSON, or a close frame that may
// be sent.
func FuzzText(f *testing.F) {
	for _, seed := range []string{hello, sub1, old1, `{"type":"ping","payload":"\ud800"}`, `{"type":"` + strings.Repeat("ü", 100) + `"}`, "{}", ""} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, message []byte, legacy bool) {
		m := Machine{Most: 2}
		if legacy {
			m.Protocol = Legacy
		}
		for range 3 {
			s := m.Text(message)
			if s.Do == Init {
				m.Accept()
			}
			if len(s.Send) > 0 && !json.Valid(s.Send) {
				t.Fatalf("sends %q", s.Send)
			}
			if s.Do == Start && !json.Valid(s.Payload) {
				t.Fatalf("starts %q", s.Payload)
			}
			if s.Do == Close && (len(s.Reason) > 123 || !utf8.ValidString(s.Reason) || s.Code < 1000 || s.Code > 4999) {
				t.Fatalf("closes with %d %q", s.Code, s.Reason)
			}
		}
	})
}
