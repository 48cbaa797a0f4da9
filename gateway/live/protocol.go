// Package live serves GraphQL connections: WebSocket connections on which a client runs
// many operations. A Machine holds the rules of the two subprotocols, without sockets
// and clocks; a connection moves its messages.
package live

import (
	"bytes"

	"github.com/sluicegate/sluice/internal/http1"
)

// A Protocol is a WebSocket subprotocol for GraphQL.
type Protocol uint8

// The protocols.
const (
	// TransportWS is graphql-transport-ws, that of the npm package graphql-ws.
	TransportWS Protocol = iota
	// Legacy is graphql-ws, that of the npm package subscriptions-transport-ws.
	Legacy
)

// String returns the name by which clients ask for the protocol.
func (p Protocol) String() string {
	if p == Legacy {
		return "graphql-ws"
	}
	return "graphql-transport-ws"
}

// Choose returns the first known protocol of a Sec-WebSocket-Protocol list, and
// whether there is one.
func Choose(offered []byte) (Protocol, bool) {
	for len(offered) > 0 {
		var one []byte
		one, offered = http1.CutElement(offered)
		for _, p := range [...]Protocol{TransportWS, Legacy} {
			if string(bytes.TrimSpace(one)) == p.String() {
				return p, true
			}
		}
	}
	return 0, false
}

// Names of messages that both protocols share.
const (
	typeInit     = "connection_init"
	typeAck      = "connection_ack"
	typeComplete = "complete"
	typeError    = "error"

	typeConnectionError = "connection_error" // of Legacy
)

// Close codes: those of RFC 6455 section 7.4.1, and from 4400 on those of
// graphql-transport-ws.
const (
	CloseNormal          = 1000
	CloseGoingAway       = 1001
	CloseProtocol        = 1002
	CloseAbnormal        = 1006 // no close frame came or went
	CloseInvalidText     = 1007
	CloseTooBig          = 1009
	CloseInternal        = 1011
	CloseRestart         = 1012 // clients connect again
	CloseTryAgain        = 1013
	CloseBadMessage      = 4400
	CloseUnauthorized    = 4401
	CloseForbidden       = 4403
	CloseInitTimeout     = 4408
	CloseDuplicate       = 4409
	CloseSecondInit      = 4429
	CloseSlowConsumer    = 4500
	maxReason            = 123 // bytes, RFC 6455 section 5.5
	maxID                = 256 // bytes of an operation's id
	maxNesting           = 64  // of a message outside its payload's variables
	reasonIdle           = "The connection was idle for too long"
	reasonInitTimeout    = "Connection initialisation timeout"
	reasonSecondInit     = "Too many initialisation requests"
	reasonUnauthorized   = "Unauthorized"
	reasonNotUTF8        = "Text messages are UTF-8"
	reasonCorrupt        = "A message is not compressed as it should be"
	reasonTooBig         = "A message is too large"
	reasonSyntax         = "JSON syntax error"
	reasonBinary         = "Only text messages are accepted"
	reasonMissingID      = "Message is missing the 'id' property"
	reasonLongID         = "The 'id' property is too long"
	reasonMissingPayload = "Message is missing the 'payload' property"
)
