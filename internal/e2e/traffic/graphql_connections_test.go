package traffic

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// talks opens a GraphQL connection with header lines as pairs.
func (g *traffic) talks(path string, headers ...string) (*websocket.Conn, *http.Response) {
	g.T.Helper()
	head := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		head.Set(headers[i], headers[i+1])
	}
	dialer := websocket.Dialer{HandshakeTimeout: rig.Patience, Subprotocols: []string{"graphql-transport-ws"}, EnableCompression: true}
	c, resp, err := dialer.Dial("ws://"+g.addr+path, head)
	if err != nil {
		g.T.Fatalf("%s: %v", path, err)
	}
	g.T.Cleanup(func() { c.Close() })
	return c, resp
}

// hear returns the next message of a connection, or how it ends.
func hear(c *websocket.Conn) string {
	_ = c.SetReadDeadline(time.Now().Add(rig.Patience))
	_, text, err := c.ReadMessage()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Each of the settings of GraphQL connections is in force.
func TestGraphQLConnectionsAreBoundedBySettings(t *testing.T) {
	t.Parallel()
	const (
		hello    = `{"type":"connection_init"}`
		ack      = `{"type":"connection_ack"}`
		query    = `{"id":"1","type":"subscribe","payload":{"query":"{ secret }"}}`
		group    = "gateway.graphql_connections."
		beat     = `{"type":"pong","payload":{"type":"heartbeat"}}`
		tooSlow  = "close 4408"
		tooLarge = "close 1009"
	)
	for _, c := range []struct {
		setting, value string
		says           []string
		hears          []string
	}{
		{"init_timeout", "100ms", nil, []string{tooSlow}},
		{"idle_timeout", "100ms", []string{hello}, []string{ack, "close 1000 (normal): The connection was idle for too long"}},
		{"heartbeat", "1s", []string{hello}, []string{ack, beat, beat}},
		{"max_message", "1KiB", []string{strings.Repeat(" ", 1025)}, []string{tooLarge}},
		{"max_queue", "1KiB", []string{hello, strings.Replace(query, `"1"`, `"`+strings.Repeat("1", 250)+`"`, 1)}, []string{ack, "close 4500"}},
		{"max_response", "1KiB", []string{hello, query}, []string{ack, "The response is larger than 1024 bytes"}},
		{"max_operations", "1", []string{hello, query, strings.Replace(query, "1", "2", 1)}, []string{ack, "Too many operations are active on this connection"}},
	} {
		t.Run(c.setting, func(t *testing.T) {
			t.Parallel()
			answered := make(chan struct{})
			up, target := newRecorder(t)
			up.do(func(arrived) string {
				if c.setting == "max_operations" {
					<-answered
				}
				body := `{"data":{"secret":"` + strings.Repeat("x", 1500) + `"}}`
				return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			})
			g := newTraffic(t, settings{"gateway.websockets": "true", group + c.setting: c.value}, nil, rig.GraphDef("g", target, true, nil))
			conn, resp := g.talks("/g/")
			if offer := resp.Header.Get("Sec-WebSocket-Extensions"); offer != "" {
				t.Errorf("it negotiates %s", offer)
			}
			for _, text := range c.says {
				if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range c.hears {
				if got := hear(conn); !strings.Contains(got, want) {
					t.Errorf("heard %.300s, want %s", got, want)
				}
			}
			close(answered)
		})
	}
}

// A client certificate authenticates a connection by itself, or besides what
// connection_init has.
func TestCertificatesOfGraphQLConnections(t *testing.T) {
	t.Parallel()
	const hello, ack = `{"type":"connection_init"}`, `{"type":"connection_ack"}`
	authority := testenv.NewAuthority(t, "clients")
	shown, other := authority.Client("shown"), authority.Client("other")
	_, target := newRecorder(t)
	late := object{"authToken": object{"auth_header_name": "X-Key", "use_connection_init": true}}
	mutual, stands := rig.GraphDef("mutual", target, false, nil), rig.GraphDef("stands", target, false, nil)
	mutual["use_mutual_tls_auth"], mutual["client_certificates"], mutual["use_standard_auth"], mutual["auth_configs"] = true, []string{idOf(shown)}, true, late
	stands["org_id"] = "acme"
	stands["auth_configs"] = object{"authToken": object{"use_certificate": true, "use_connection_init": true}}
	g := newTLSTraffic(t, settings{"gateway.websockets": "true", "gateway.tls.ask_clients": "always"}, mutual, stands)
	g.addCertificate(t, shown.CertPEM)
	key := g.newKey(object{"access_rights": rig.AccessTo("mutual")})
	g.newKey(object{"access_rights": rig.AccessTo("stands"), "org_id": "acme", "certificate": idOf(shown)})
	open := func(path string, with *testenv.Identity) (*websocket.Conn, int) {
		conf := &tls.Config{RootCAs: g.servers.Pool(), ServerName: "first.example"}
		if with != nil {
			conf.Certificates = []tls.Certificate{with.TLS}
		}
		d := websocket.Dialer{HandshakeTimeout: rig.Patience, Subprotocols: []string{"graphql-transport-ws"}, TLSClientConfig: conf}
		c, resp, err := d.Dial("wss://"+g.secure+path, nil)
		if resp == nil {
			t.Fatal(err)
		}
		if err == nil {
			t.Cleanup(func() { c.Close() })
		}
		return c, resp.StatusCode
	}
	for _, c := range []struct {
		path   string
		with   *testenv.Identity
		status int
		says   string
		hears  string
	}{
		{"/mutual/", shown, 101, `{"type":"connection_init","payload":{"X-Key":"` + key + `"}}`, ack},
		{"/mutual/", shown, 101, hello, "close 1011 (internal server error): Forbidden"},
		{"/mutual/", other, 403, "", ""},
		{"/mutual/", nil, 403, "", ""},
		{"/stands/", shown, 101, hello, ack},
		{"/stands/", other, 401, "", ""},
		{"/stands/", nil, 401, "", ""},
	} {
		conn, status := open(c.path, c.with)
		if status != c.status {
			t.Errorf("%s: the handshake gets %d, want %d", c.path, status, c.status)
		}
		if status != 101 || c.status != 101 {
			continue
		}
		if err := conn.WriteMessage(websocket.TextMessage, []byte(c.says)); err != nil {
			t.Fatal(err)
		}
		if got := hear(conn); !strings.Contains(got, c.hears) {
			t.Errorf("%s: heard %s, want %s", c.path, got, c.hears)
		}
	}
}
