package persisted

import (
	"strconv"
	"sync"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// A kind is the type of values that a placeholder accepts.
type kind uint8

const (
	text    kind = iota // anything, as a string
	integer             // a 32-bit integer
	number
	boolean
)

// A piece is a run of bytes and the placeholder behind it.
type piece struct {
	before   []byte
	value    *vars.Template // the value of the placeholder; nil: there is none
	kind     kind
	variable string // that contains the placeholder
	counted  bool   // value depends on the counters of the request
}

// A work is the scratch for building one body.
type work struct {
	values  [maxSegments][]byte // of the path's parameters
	decoded []byte              // the memory of values
	text    []byte              // of a placeholder
}

var works = sync.Pool{New: func() any { return new(work) }}

// build sets ex.Outgoing.Body to the body of a route.
func (w *work) build(ex *pipeline.Exchange, r *route, p *parts) *pipeline.Rejection {
	values := w.parameters(r, p)
	body := ex.BodyBuf[:0]
	for i := range r.pieces {
		piece := &r.pieces[i]
		body = append(body, piece.before...)
		if piece.value == nil {
			continue
		}
		w.text = piece.value.AppendPath(w.text[:0], ex, values)
		if piece.counted && len(w.text) == 0 && !ex.Charge.Whole && ex.Grant != nil {
			w.text = append(w.text, '0') // replaced once the request has been counted
		}
		var ok bool
		if body, ok = piece.kind.append(body, w.text); !ok {
			return piece.refuse(w.text)
		}
	}
	ex.BodyBuf, ex.Outgoing.Body = body, body
	return nil
}

// parameters returns the unescaped values of the path's parameters.
func (w *work) parameters(r *route, p *parts) [][]byte {
	w.decoded = w.decoded[:0]
	for i, segment := range r.params {
		start := len(w.decoded)
		w.decoded = appendDecoded(w.decoded, p.at[segment])
		w.values[i] = w.decoded[start:] // may alias an earlier array of decoded
	}
	return w.values[:len(r.params)]
}

// appendDecoded appends an unescaped segment. Every percent sign in a path begins a
// valid escape.
func appendDecoded(dst, segment []byte) []byte {
	for i := 0; i < len(segment); i++ {
		c := segment[i]
		if c == '%' && i+2 < len(segment) {
			c = fromHex(segment[i+1])<<4 | fromHex(segment[i+2])
			i += 2
		}
		dst = append(dst, c)
	}
	return dst
}

func fromHex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c - 'A' + 10
}

// append appends the value of a placeholder as JSON. It returns false if the text
// is no value of the kind.
func (k kind) append(dst, value []byte) ([]byte, bool) {
	switch k {
	case integer:
		if _, err := strconv.ParseInt(string(value), 10, 32); err != nil || !isNumber(value) {
			return dst, false
		}
	case number:
		if _, err := strconv.ParseFloat(string(value), 64); err != nil || !isNumber(value) {
			return dst, false
		}
	case boolean:
		if string(value) != "true" && string(value) != "false" {
			return dst, false
		}
	default:
		return jsonscan.AppendString(dst, value), true
	}
	return append(dst, value...), true
}

// isNumber reports whether a text is a JSON number.
func isNumber(value []byte) bool {
	s := jsonscan.New(value, 0)
	v := s.Value()
	return v.Kind == jsonscan.Number && len(v.Raw) == len(value)
}

// maxEcho bounds the part of a value that a refusal repeats, in bytes.
const maxEcho = 200

var expected = [...]string{
	integer: "Int cannot represent non-integer value: ",
	number:  "Float cannot represent non numeric value: ",
	boolean: "Boolean cannot represent a non boolean value: ",
}

// refuse refuses a call with a text that is no value of the placeholder's kind.
func (p *piece) refuse(value []byte) *pipeline.Rejection {
	if len(value) > maxEcho {
		value = append(append([]byte(nil), value[:maxEcho]...), "..."...)
	}
	shown := string(jsonscan.AppendString(nil, value))
	return request.Invalid(400, `Variable "$`+p.variable+`" got invalid value `+shown+"; "+expected[p.kind]+shown)
}
