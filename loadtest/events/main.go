// Command events is the upstream of subscriptions in the load tests: it speaks
// graphql-transport-ws, and sends a message to every subscription when it is asked to.
//
//	POST /publish    sends a message to all subscriptions; returns how many there are
//	GET /count       returns how many there are
//	any other path   a WebSocket handshake, or a query, which is answered with {"data":{"a":1}}
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"sync"

	"github.com/fasthttp/websocket"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:9000", "`address` to listen on")
	size := flag.Int("size", 200, "`bytes` of text in each message")
	flag.Parse()
	log.Fatal(http.ListenAndServe(*addr, newServer(*size)))
}

func newServer(size int) http.Handler {
	s := &server{text: bytes.Repeat([]byte{'x'}, size), open: make(map[subscription]struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /publish", s.publish)
	mux.HandleFunc("GET /count", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.count()) })
	mux.HandleFunc("/", s.answer)
	return mux
}

// A server knows the subscriptions that are open.
type server struct {
	text []byte

	mu   sync.Mutex
	open map[subscription]struct{}
	sent int // messages to each
}

type subscription struct {
	ws *conn
	id string
}

// conn is a connection. Messages are written with mu held.
type conn struct {
	*websocket.Conn
	mu sync.Mutex
}

func (c *conn) say(text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.WriteMessage(websocket.TextMessage, text) // a lost connection shows when it is read
}

var upgrader = websocket.Upgrader{
	Subprotocols: []string{"graphql-transport-ws"}, ReadBufferSize: 512, WriteBufferSize: 512, WriteBufferPool: new(sync.Pool),
	CheckOrigin: func(*http.Request) bool { return true },
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"data":{"a":1}}`)
		return
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // answered
	}
	c := &conn{Conn: ws}
	go s.serve(c) // without the server's buffers
}

func (s *server) serve(c *conn) {
	defer func() { _ = c.Close() }()
	var mine []subscription
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, one := range mine {
			delete(s.open, one)
		}
	}()
	for {
		var m struct{ ID, Type string }
		_, text, err := c.ReadMessage()
		if err != nil || json.Unmarshal(text, &m) != nil {
			return
		}
		one := subscription{c, m.ID}
		switch m.Type {
		case "connection_init":
			c.say([]byte(`{"type":"connection_ack"}`))
		case "ping":
			c.say([]byte(`{"type":"pong"}`))
		case "subscribe":
			mine = append(mine, one)
			s.mu.Lock()
			s.open[one] = struct{}{}
			s.mu.Unlock()
		case "complete":
			s.mu.Lock()
			delete(s.open, one)
			s.mu.Unlock()
		}
	}
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *server) publish(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	for one := range s.open {
		one.ws.say(fmt.Appendf(nil, `{"id":%q,"type":"next","payload":{"data":{"event":{"n":%d,"text":%q}}}}`, one.id, s.sent, s.text))
	}
	fmt.Fprint(w, len(s.open))
}
