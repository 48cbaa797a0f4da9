package wsconn

import (
	"bytes"
	"net"
	"net/http"
	"sync"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/internal/http1"
)

// Deflate is the value of Sec-WebSocket-Extensions by which a server agrees to compress
// messages (RFC 7692), each by itself, so that nothing is kept between two.
const Deflate = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

// AsksForDeflate reports whether a Sec-WebSocket-Extensions list of a client has an offer that
// Deflate answers.
func AsksForDeflate(offers []byte) bool {
	for len(offers) > 0 {
		var offer []byte
		if offer, offers = http1.CutElement(offers); isDeflate(offer) {
			return true
		}
	}
	return false
}

func isDeflate(offer []byte) bool {
	name, parameters, _ := bytes.Cut(offer, []byte{';'})
	if string(http1.Trim(name)) != "permessage-deflate" {
		return false
	}
	for len(parameters) > 0 {
		var one []byte
		one, parameters, _ = bytes.Cut(parameters, []byte{';'})
		one, _, _ = bytes.Cut(http1.Trim(one), []byte{'='})
		switch string(http1.Trim(one)) {
		case "server_no_context_takeover", "client_no_context_takeover", "client_max_window_bits":
		default:
			return false // a smaller window for what the server sends, or unknown
		}
	}
	return true
}

// deflating is the upgrader of connections that Deflate was answered on.
var (
	deflating = websocket.Upgrader{
		ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer, WriteBufferPool: new(sync.Pool), EnableCompression: true,
		CheckOrigin: upgrader.CheckOrigin,
	}
	deflatingHandshake = &http.Request{Method: http.MethodGet, Header: withExtension(handshake.Header)}
)

func withExtension(head http.Header) http.Header {
	head = head.Clone()
	head.Set("Sec-Websocket-Extensions", "permessage-deflate")
	return head
}

// DeflatedFrames is Frames for a connection whose messages are compressed. The read limit
// of the result bounds what is received, and not what that becomes.
func DeflatedFrames(client net.Conn, received []byte) (*websocket.Conn, error) {
	return take(&deflating, deflatingHandshake, client, received)
}
