package gateway_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stage/auth/basic"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/password"
)

const (
	tokenSecret  = "secret-of-tokens-of-32-bytes-or-more"
	later        = `"use_connection_init":true`
	keyOfTheLate = `{"org_id":"o","rate":-1,"quota_max":-1,"access_rights":{"keys":{},"named":{},"both":{},"never":{},"users":{},"tokens":{},"stripped":{}}%s}`
)

// lateSockets is a gateway whose APIs take credentials everywhere, also in connection_init.
func lateSockets(t *testing.T, change func(*gateway.Deps)) *sockets {
	s := withSockets(t, func(d *gateway.Deps) {
		d.Stages.Auth.WithPasswords(basic.New(basic.Options{Size: 100, TTL: time.Hour, PerUser: 100, PerAddress: 1000, AtOnce: 1})).WithTokens(jwt.New(nil, 100))
		if change != nil {
			change(d)
		}
	})
	apis := make([]*definition.API, 0, 8)
	for id, how := range map[string]string{
		"keys":     `"auth_configs":{"authToken":{"use_param":true,"param_name":"key","use_cookie":true,"cookie_name":"c",` + later + `}}`,
		"named":    `"auth_configs":{"authToken":{"auth_header_name":"X-Key",` + later + `}}`,
		"stripped": `"strip_auth_data":true,"auth_configs":{"authToken":{` + later + `}}`,
		"never":    `"auth_configs":{"authToken":{"use_param":true,"param_name":"key"}}`,
		"users":    `"use_basic_auth":true,"auth_configs":{"basic":{` + later + `}}`,
		"tokens":   `"enable_jwt":true,"jwt_signing_method":"hmac","auth_configs":{"jwt":{` + later + `}}`,
		"both":     `"use_basic_auth":true,"use_standard_auth":true,"auth_configs":{"basic":{` + later + `},"authToken":{"auth_header_name":"X-Key",` + later + `}}`,
	} {
		def, err := definition.ParseAPI(fmt.Appendf(nil, `{"api_id":%[1]q,"name":%[1]q,"org_id":"o",%[2]s,"proxy":{"listen_path":"/%[1]s/","target_url":%[3]q,"strip_listen_path":true},
			"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":%[4]q,"proxy":{"subscription_type":"graphql-transport-ws"}}}`, id, how, s.upstream.URL, socketSchema))
		if err != nil {
			t.Fatal(err)
		}
		apis = append(apis, def)
	}
	s.MustLoad(apis...)
	stored, err := password.NewHasher(1, 1, time.Second).Hash(t.Context(), "right")
	if err != nil {
		t.Fatal(err)
	}
	s.key("key", fmt.Sprintf(keyOfTheLate, ""))
	s.key("oann", fmt.Sprintf(keyOfTheLate, `,"basic_auth_data":{"password":"`+stored+`","hash_type":"argon2id"}`))
	s.key("signer", fmt.Sprintf(keyOfTheLate, `,"jwt_data":{"secret":"`+tokenSecret+`"}`))
	return s
}

// dialWith opens a connection with a header.
func (s *sockets) dialWith(path, protocol string, head http.Header) (*client, *http.Response, error) {
	d := websocket.Dialer{Subprotocols: []string{protocol}}
	if protocol == "" {
		d.Subprotocols = nil
	}
	ws, resp, err := d.Dial("ws://"+s.Addr+path, head)
	if err != nil {
		return nil, resp, err
	}
	s.t.Cleanup(func() { ws.Close() })
	return &client{ws, s.t}, resp, nil
}

func basicOf(user, word string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+word))
}

func signed(secret string) string {
	return "Bearer " + signedToken(`{"alg":"HS256","kid":"signer"}`, `{"sub":"u"}`, secret)
}

// initOf returns a connection_init whose payload has members as pairs.
func initOf(members ...string) string {
	payload := map[string]string{}
	for i := 0; i < len(members); i += 2 {
		payload[members[i]] = members[i+1]
	}
	text, _ := json.Marshal(map[string]any{"type": "connection_init", "payload": payload})
	return string(text)
}

const (
	acked     = `{"type":"connection_ack"}`
	forbidden = "websocket: close 1011 (internal server error): Forbidden"
	plain     = `{"type":"connection_init"}`
)

// Every auth mode, with the credential in each place where it may be.
func TestCredentialsOfConnections(t *testing.T) {
	s := lateSockets(t, nil)
	nested := func(name, value string) string {
		return fmt.Sprintf(`{"type":"connection_init","payload":{"headers":{%q:%q},"other":{"a":[1]}}}`, name, value)
	}
	for _, c := range []struct {
		name, path string
		headers    []string
		status     int // of the handshake
		init, want string
	}{
		{"key in the header", "/keys/", []string{"Authorization: key"}, 101, plain, acked},
		{"key in a parameter", "/keys/?key=key", nil, 101, plain, acked},
		{"key in a cookie", "/keys/", []string{"Cookie: c=key"}, 101, plain, acked},
		{"key in the payload", "/keys/", nil, 101, initOf("Authorization", "key"), acked},
		{"key in the payload with a scheme", "/keys/", nil, 101, initOf("authorization", "Bearer key"), acked},
		{"key in headers of the payload", "/keys/", nil, 101, nested("AUTHORIZATION", "key"), acked},
		{"key in another header of the payload", "/named/", nil, 101, initOf("x-key", "key"), acked},
		{"key of the handshake goes before that of the payload", "/keys/", []string{"Authorization: key"}, 101, initOf("Authorization", "wrong"), acked},
		{"wrong key in the header", "/keys/", []string{"Authorization: wrong"}, 403, "", ""},
		{"wrong key in a parameter", "/keys/?key=wrong", nil, 403, "", ""},
		{"wrong key in a cookie", "/keys/", []string{"Cookie: c=wrong"}, 403, "", ""},
		{"wrong key in the payload", "/keys/", nil, 101, initOf("Authorization", "wrong"), forbidden},
		{"key under another name", "/named/", nil, 101, initOf("Authorization", "key"), forbidden},
		{"key as a parameter in the payload", "/keys/", nil, 101, initOf("key", "key", "c", "key"), forbidden},
		{"no payload", "/keys/", nil, 101, plain, forbidden},
		{"payload that is an array", "/keys/", nil, 101, `{"type":"connection_init","payload":["key"]}`, forbidden},
		{"no key, and none in the payload", "/never/", nil, 401, "", ""},
		{"user in the header", "/users/", []string{"Authorization: " + basicOf("ann", "right")}, 101, plain, acked},
		{"user in the payload", "/users/", nil, 101, initOf("Authorization", basicOf("ann", "right")), acked},
		{"wrong password in the payload", "/users/", nil, 101, initOf("Authorization", basicOf("ann", "left")), forbidden},
		{"malformed user in the payload", "/users/", nil, 101, initOf("Authorization", "Basic ?"), forbidden},
		{"token in the header", "/tokens/", []string{"Authorization: " + signed(tokenSecret)}, 101, plain, acked},
		{"token in the payload", "/tokens/", nil, 101, initOf("Authorization", signed(tokenSecret)), acked},
		{"wrong token in the payload", "/tokens/", nil, 101, initOf("Authorization", signed("another-secret-of-32-bytes-or-more!")), forbidden},
		{"user and key in the payload", "/both/", nil, 101, initOf("Authorization", basicOf("ann", "right"), "X-Key", "key"), acked},
		{"user in the header and key in the payload", "/both/", []string{"Authorization: " + basicOf("ann", "right")}, 101, initOf("X-Key", "key"), acked},
		{"user without key", "/both/", nil, 101, initOf("Authorization", basicOf("ann", "right")), forbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			head := http.Header{}
			for _, line := range c.headers {
				name, value, _ := strings.Cut(line, ": ")
				head.Set(name, value)
			}
			conn, resp, err := s.dialWith(c.path, "graphql-transport-ws", head)
			if c.status != 101 {
				if err == nil || resp.StatusCode != c.status {
					t.Fatalf("the handshake: %v %v, want %d", resp, err, c.status)
				}
				return
			}
			if err != nil {
				t.Fatal(resp, err)
			}
			if conn.say(c.init).wants(c.want); c.want == acked {
				conn.say(asks("subscribe", "1", "{a}")).wants(`{"id":"1","type":"next","payload":{"data":{"a":15}}}`, `{"id":"1","type":"complete"}`)
			}
		})
	}
}

// What is wrong with a payload is said, and no other message comes through before it.
func TestConnectionsWithoutCredentials(t *testing.T) {
	s := lateSockets(t, nil)
	many := make([]string, 0, 202)
	for i := range 101 {
		many = append(many, fmt.Sprint("m", i), "")
	}
	for name, c := range map[string]struct{ protocol, path, says, want string }{
		"an operation":          {"graphql-transport-ws", "/keys/", asks("subscribe", "1", "{a}"), "websocket: close 4401: Unauthorized"},
		"a number":              {"graphql-transport-ws", "/keys/", `{"type":"connection_init","payload":{"Authorization":1}}`, "websocket: close 4400: Authorization in the payload of connection_init must be a text"},
		"twice":                 {"graphql-transport-ws", "/keys/", `{"type":"connection_init","payload":{"Authorization":"key","headers":{"authorization":"key"}}}`, "websocket: close 4400: Authorization is in the payload of connection_init twice"},
		"a line break":          {"graphql-transport-ws", "/keys/", initOf("Authorization", "key\r\nX-Admin: 1"), "websocket: close 4400: Authorization in the payload of connection_init has control characters"},
		"a long value":          {"graphql-transport-ws", "/keys/", initOf("Authorization", strings.Repeat("k", 8193)), "websocket: close 4400: Authorization in the payload of connection_init is longer than 8192 bytes"},
		"many members":          {"graphql-transport-ws", "/keys/", initOf(many...), "websocket: close 4400: The payload of connection_init has more than 100 members"},
		"the older protocol":    {"graphql-ws", "/keys/", plain, `{"type":"connection_error","payload":{"message":"Forbidden"}}`},
		"a ping before":         {"graphql-transport-ws", "/keys/", `{"type":"ping"}`, `{"type":"pong"}`},
		"an unknown subprotocl": {"soap", "/keys/", "", "400"},
		"no GraphQL connection": {"", "/keys/", "", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			conn, resp, err := s.dialWith(c.path, c.protocol, nil)
			if err != nil {
				if fmt.Sprint(resp.StatusCode) != c.want {
					t.Fatal(resp, err)
				}
				return
			}
			conn.say(c.says).wants(c.want)
			if c.protocol == "graphql-ws" {
				conn.wants("websocket: close 1011 (internal server error): Forbidden")
			}
		})
	}
	req, _ := http.NewRequest(http.MethodPost, "http://"+s.Addr+"/keys/", strings.NewReader(`{"query":"{a}"}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Upgrade", "websocket")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode == 200 {
		t.Errorf("a request without a key: %v %v", resp, err)
	}
}

func TestConnectionsThatNeverAuthenticateEnd(t *testing.T) {
	s := lateSockets(t, func(d *gateway.Deps) { d.Config.Sockets.InitTimeout = 50 * time.Millisecond })
	conn, _, err := s.dialWith("/keys/", "graphql-transport-ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.wants("websocket: close 4408: Connection initialisation timeout")
}

// Connections that have not authenticated are bounded; one that has, or is gone, makes room.
func TestConnectionsThatWaitForTheirCredentialAreBounded(t *testing.T) {
	s := lateSockets(t, func(d *gateway.Deps) { d.Config.LateSockets = 2 })
	open := func() *client {
		t.Helper()
		conn, resp, err := s.dialWith("/keys/", "graphql-transport-ws", nil)
		if err != nil {
			t.Fatal(resp, err)
		}
		return conn
	}
	first, second := open(), open()
	full := func() {
		t.Helper()
		if _, resp, err := s.dialWith("/keys/", "graphql-transport-ws", nil); err == nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("one too many: %v %v", resp, err)
		}
	}
	full()
	if _, resp, err := s.dialWith("/named/", "graphql-transport-ws", nil); err != nil {
		t.Errorf("another API: %v %v", resp, err)
	}
	s.dial("/keys/", "graphql-transport-ws", "key").greets()
	first.say(initOf("Authorization", "key")).wants(acked)
	third := open()
	full()
	second.say(plain).wants(forbidden)
	second.Close()
	third.Close()
	await(t, "room", func() bool {
		conn, _, err := s.dialWith("/keys/", "graphql-transport-ws", nil)
		return err == nil && conn != nil
	})
}

// The key of a payload governs the connection from then on.
func TestTheKeyOfAPayloadGovernsItsConnection(t *testing.T) {
	s := lateSockets(t, nil)
	for _, c := range []struct {
		path, key, init, why string
	}{
		{"/keys/", "key", initOf("Authorization", "key"), "Access to this API has been disallowed"},
		{"/users/", "oann", initOf("Authorization", basicOf("ann", "right")), "User not authorised"},
	} {
		conn, _, err := s.dialWith(c.path, "graphql-transport-ws", nil)
		if err != nil {
			t.Fatal(err)
		}
		conn.say(c.init).wants(acked).
			say(asks("subscribe", "1", "subscription forever{count(to:9)}")).wants(`{"id":"1","type":"next","payload":{"data":{"count":1}}}`)
		if err := s.Store.Delete(t.Context(), s.Hasher.Hash(c.key)); err != nil {
			t.Fatal(err)
		}
		conn.wants("websocket: close 4403: " + c.why)
		<-s.upstream.left
	}
	s.key("short", `{"org_id":"o","rate":-1,"quota_max":1,"quota_renewal_rate":3600,"access_rights":{"keys":{"restricted_types":[{"name":"Query","fields":["secret"]}]}}}`)
	conn, _, err := s.dialWith("/keys/", "graphql-transport-ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.say(initOf("Authorization", "short")).wants(acked).
		say(asks("subscribe", "1", "{secret}")).wants(`{"id":"1","type":"error","payload":[{"message":"field: secret is restricted on type: Query"}]}`).
		say(asks("subscribe", "1", "{a}")).wants(`{"id":"1","type":"next","payload":{"data":{"a":15}}}`, `{"id":"1","type":"complete"}`).
		say(asks("subscribe", "1", "{a}")).wants(`{"id":"1","type":"error","payload":[{"message":"Quota exceeded"}]}`)
}

// Only credentials are taken from a payload, and they are kept from the upstream where
// those of requests are.
func TestWhatOfAPayloadReachesTheUpstream(t *testing.T) {
	s := lateSockets(t, nil)
	for path, want := range map[string]string{"/keys/": "key", "/stripped/": ""} {
		conn, _, err := s.dialWith(path, "graphql-transport-ws", http.Header{"X-Kept": {"yes"}})
		if err != nil {
			t.Fatal(err)
		}
		conn.say(initOf("Authorization", "key", "X-Forwarded-User", "root", "Host", "evil.example")).wants(acked).
			say(asks("subscribe", "1", "{a}")).wants(`{"id":"1","type":"next","payload":{"data":{"a":15}}}`)
		head := *s.upstream.last.Load()
		if head.Get("Authorization") != want || head.Get("X-Forwarded-User") != "" || head.Get("X-Kept") != "yes" {
			t.Errorf("%s: the upstream got %v", path, head)
		}
	}
}
