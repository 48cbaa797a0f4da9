package live

import (
	"slices"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/jsonscan"
)

// A Do is what follows from a message or a moment.
type Do uint8

// What follows.
const (
	Nothing Do = iota
	Init       // decide on the payload of connection_init, and call Accept or Refuse
	Start      // begin the operation ID, whose request is Payload
	Stop       // end the operation ID
	Close      // close the connection with Code and Reason
)

// A Step is what a connection does next. Send, if it is not empty, is sent first. ID and
// Payload alias the message.
type Step struct {
	Do      Do
	ID      []byte
	Payload []byte // a JSON value; nil: none
	Send    []byte
	Code    int
	Reason  string
}

// A Machine is the state of one connection as its protocol has it: messages go in, steps
// come out. It is not safe for concurrent use.
type Machine struct {
	Protocol Protocol
	Most     int // operations that may be active at once

	acked  bool
	init   bool // connection_init has come
	active map[string]struct{}
}

// Active returns how many operations are active.
func (m *Machine) Active() int { return len(m.active) }

// IsActive reports whether an operation has not ended yet.
func (m *Machine) IsActive(id []byte) bool {
	_, ok := m.active[string(id)]
	return ok
}

// InitTimeout returns what follows when the time for connection_init and its answer has
// passed.
func (m *Machine) InitTimeout() Step {
	if m.acked {
		return Step{}
	}
	return closing(CloseInitTimeout, reasonInitTimeout)
}

// Heartbeat returns the message that keeps a connection alive, nil before it is
// acknowledged.
func (m *Machine) Heartbeat() []byte {
	switch {
	case !m.acked:
		return nil
	case m.Protocol == Legacy:
		return []byte(`{"type":"ka"}`)
	}
	return []byte(`{"type":"pong","payload":{"type":"heartbeat"}}`)
}

// Accept acknowledges the connection.
func (m *Machine) Accept() Step {
	m.acked = true
	return Step{Send: []byte(`{"type":"connection_ack"}`)}
}

// Refuse closes a connection whose connection_init is not accepted.
func (m *Machine) Refuse(code int, reason string) Step {
	s := closing(code, reason)
	if m.Protocol == Legacy {
		s.Send = appendMessage(nil, typeConnectionError, nil, append(append([]byte(`{"message":`), jsonscan.AppendString(nil, []byte(reason))...), '}'))
		s.Code = CloseInternal
	}
	return s
}

// End frees the id of an operation. It returns false if the operation is not active,
// because its client ended it: no more is sent of it then.
func (m *Machine) End(id []byte) bool {
	if !m.IsActive(id) {
		return false
	}
	delete(m.active, string(id))
	return true
}

// Binary returns what follows from a binary message.
func (m *Machine) Binary() Step { return closing(CloseBadMessage, reasonBinary) }

// Text returns what follows from a text message.
func (m *Machine) Text(message []byte) Step {
	got, ok := read(message)
	if !ok && !utf8.Valid(message) { // the framing leaves that to us
		return closing(CloseInvalidText, reasonNotUTF8)
	}
	if !ok {
		return closing(CloseBadMessage, reasonSyntax)
	}
	if string(got.kind) == typeInit {
		return m.initialise(&got)
	}
	if m.Protocol == Legacy {
		return m.legacy(&got)
	}
	return m.transport(&got)
}

func (m *Machine) initialise(got *message) Step {
	if m.init {
		if m.Protocol == Legacy {
			return Step{}
		}
		return closing(CloseSecondInit, reasonSecondInit)
	}
	m.init = true
	return Step{Do: Init, Payload: got.payload}
}

func (m *Machine) transport(got *message) Step {
	switch string(got.kind) {
	case "ping":
		return Step{Send: appendMessage(make([]byte, 0, len(got.payload)+32), "pong", nil, got.payload)}
	case "pong":
		return Step{}
	case "subscribe":
		return m.start(got)
	case typeComplete:
		return m.stop(got)
	}
	return invalidType(got.kind)
}

func (m *Machine) legacy(got *message) Step {
	switch string(got.kind) {
	case "start":
		return m.start(got)
	case "stop":
		s := m.stop(got)
		if s.Do == Stop {
			s.Send = m.AppendComplete(nil, got.id)
		}
		return s
	case "connection_terminate":
		return closing(CloseNormal, "")
	}
	return invalidType(got.kind)
}

func (m *Machine) start(got *message) Step {
	switch {
	case !m.acked:
		return closing(CloseUnauthorized, reasonUnauthorized)
	case len(got.id) == 0:
		return closing(CloseBadMessage, reasonMissingID)
	case len(got.id) > maxID:
		return closing(CloseBadMessage, reasonLongID)
	case len(got.payload) == 0 || got.payload[0] != '{':
		return closing(CloseBadMessage, reasonMissingPayload)
	case m.IsActive(got.id):
		return closing(CloseDuplicate, "Subscriber for "+string(got.id)+" already exists")
	case len(m.active) >= m.Most:
		return Step{Send: m.AppendError(nil, got.id, tooMany)}
	}
	if m.active == nil {
		m.active = make(map[string]struct{})
	}
	m.active[string(got.id)] = struct{}{}
	return Step{Do: Start, ID: got.id, Payload: got.payload}
}

// tooMany is the errors of an operation beyond Machine.Most.
var tooMany = []byte(`[{"message":"Too many operations are active on this connection."}]`)

func (m *Machine) stop(got *message) Step {
	if len(got.id) == 0 {
		return closing(CloseBadMessage, reasonMissingID)
	}
	if !m.End(got.id) {
		return Step{} // it may have ended while the message was on its way
	}
	return Step{Do: Stop, ID: got.id}
}

// AppendNext appends the message with a result of an operation, a JSON object.
func (m *Machine) AppendNext(b, id, result []byte) []byte {
	if m.Protocol == Legacy {
		return appendMessage(b, "data", id, result)
	}
	return appendMessage(b, "next", id, result)
}

// AppendError appends the message by which an operation ends with errors, a JSON array.
func (m *Machine) AppendError(b, id, errors []byte) []byte {
	if m.Protocol == Legacy {
		return appendMessage(b, typeError, id, first(errors))
	}
	return appendMessage(b, typeError, id, errors)
}

// AppendComplete appends the message by which an operation ends.
func (m *Machine) AppendComplete(b, id []byte) []byte {
	return appendMessage(b, typeComplete, id, nil)
}

// first returns the first element of a JSON array: the older protocol has one error.
func first(errors []byte) []byte {
	s := jsonscan.New(errors, jsonscan.MaxDepth)
	if s.Array() && s.Element() {
		if v := s.Value(); v.Kind == jsonscan.Object {
			return v.Raw
		}
	}
	return []byte(`{"message":"internal error"}`)
}

func appendMessage(b []byte, kind string, id, payload []byte) []byte {
	b = append(b, '{')
	if id != nil {
		b = append(b, `"id":`...)
		b = jsonscan.AppendString(b, id)
		b = append(b, ',')
	}
	b = append(b, `"type":"`...)
	b = append(b, kind...)
	b = append(b, '"')
	if payload != nil {
		b = append(b, `,"payload":`...)
		b = append(b, payload...)
	}
	return append(b, '}')
}

func closing(code int, reason string) Step {
	return Step{Do: Close, Code: code, Reason: cut(reason)}
}

func invalidType(kind []byte) Step {
	return closing(CloseBadMessage, "Invalid type '"+string(kind)+"'")
}

// cut shortens a text to what a close frame holds.
func cut(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	end := maxReason
	for end > 0 && !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end]
}

// A message is one of a client. Its members alias the text.
type message struct{ kind, id, payload []byte }

// read returns the members of a message, and whether it is one. JSON is UTF-8.
func read(text []byte) (got message, ok bool) {
	s := jsonscan.New(text, maxNesting)
	if !s.Object() {
		return got, false
	}
	for s.Member() {
		name, value := s.Name(), s.Value()
		switch string(name) {
		case "type", "id":
			if value.Kind != jsonscan.String {
				return got, false
			}
			plain, err := unescape(value.Text())
			if err != nil {
				return got, false
			}
			if string(name) == "id" {
				got.id = plain
			} else {
				got.kind = plain
			}
		case "payload":
			if value.Kind != jsonscan.Null {
				got.payload = value.Raw
			}
		}
	}
	return got, s.End() && s.Err() == nil
}

// unescape returns the text of a string, without a copy where it has no escapes.
func unescape(raw []byte) ([]byte, error) {
	if slices.Contains(raw, '\\') {
		return jsonscan.Unescape(nil, raw)
	}
	return raw, nil
}
