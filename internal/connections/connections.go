// Package connections is what gateways and the admin say to each other about open
// GraphQL connections: how they are asked for, listed and ended.
package connections

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Connection is an open GraphQL connection of one gateway.
type Connection struct {
	// Id of the connection, unique among all gateways.
	ID string `json:"id"`
	// Name of the gateway that holds the connection; empty: it has no name.
	Gateway string `json:"gateway"`
	// Id of the API.
	API string `json:"api_id"`
	// Id of the organisation that the API belongs to.
	Org string `json:"org_id"`
	// Hash of the key whose connection it is; empty: none.
	Key string `json:"key_hash"`
	// Alias of that key; empty: it has none.
	Alias string `json:"key_alias"`
	// IP address of the client, behind trusted proxies.
	Address string `json:"address"`
	// Protocol of GraphQL over WebSocket.
	Protocol string `json:"protocol" enum:"graphql-transport-ws,graphql-ws"`
	// X-Request-Id of the handshake.
	Request string `json:"request_id"`
	// Time at which the connection was opened.
	Since time.Time `json:"since"`
	// Time at which the last message came or went; null: there was none.
	LastMessage *time.Time `json:"last_message"`
	// Messages from the client.
	MessagesIn uint64 `json:"messages_in"`
	// Messages to the client.
	MessagesOut uint64 `json:"messages_out"`
	// Size of the messages that wait for the client to read, in bytes.
	QueuedBytes int `json:"queued_bytes"`
	// Number of operations that are active, subscriptions included.
	Operations int `json:"active_operations"`
	// Number of subscriptions that are active.
	Subscriptions int `json:"active_subscriptions"`
	// Operations that are active; in the answer about one connection only.
	Active []Operation `json:"operations,omitempty"`
}

// An Operation is one that is active on a connection.
type Operation struct {
	// Id that the client chose.
	ID string `json:"id"`
	// Kind of the operation; empty: it has not been read yet.
	Kind string `json:"kind" enum:",query,mutation,subscription"`
	// Name of the operation; empty: it has none.
	Name string `json:"name"`
	// X-Request-Id that logs have for the operation.
	Request string `json:"request_id"`
	// Time at which it began.
	Since time.Time `json:"since"`
	// Results that were sent.
	Events uint64 `json:"events"`
}

// Compare orders connections: the newest first.
func Compare(a, b *Connection) int {
	return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.ID, b.ID))
}

// A Filter chooses connections. Empty members choose all.
type Filter struct {
	Org, API string
	Key      string // hash of the key

	After string // a Cursor; only connections behind it are listed
	Max   int    // connections listed
}

// A Cursor is a place in a list of connections: behind the connection of an ID that is
// open since a moment in Unix microseconds. Its text is the two with a hyphen.
type Cursor struct {
	Since int64
	ID    string
}

// Cursor returns the place behind the connection.
func (c *Connection) Cursor() string {
	return strconv.FormatInt(c.Since.UnixMicro(), 10) + "-" + c.ID
}

// ParseCursor reads the text of a cursor.
func ParseCursor(text string) (c Cursor, ok bool) {
	since, id, _ := strings.Cut(text, "-")
	n, err := strconv.ParseInt(since, 10, 64)
	return Cursor{n, id}, err == nil && IsID(id)
}

// IsID reports whether a text can be the id of a connection: 16 lower-case hex digits.
func IsID(text string) bool {
	return len(text) == 16 && strings.Trim(text, "0123456789abcdef") == ""
}

// An End says how a connection is closed.
type End struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

// maxReason is how long a reason may be, in bytes (RFC 6455 section 5.5).
const maxReason = 123

// ParseEnd reads how a connection is to be closed. Empty texts stand for 1000 and a
// reason that names operators.
func ParseEnd(code, reason string) (End, error) {
	e := End{Code: 1000, Reason: cmp.Or(reason, "Ended by an operator")}
	switch code {
	case "", "1000":
	case "1012", "4403":
		e.Code, _ = strconv.Atoi(code)
	default:
		return End{}, fmt.Errorf("code must be 1000 (normal: clients do not connect again on their own), 1012 (clients connect again) or 4403 (forbidden), not %.40q", code)
	}
	if len(e.Reason) > maxReason || !utf8.ValidString(e.Reason) {
		return End{}, fmt.Errorf("close_reason must be UTF-8 of at most %d bytes", maxReason)
	}
	return e, nil
}
