package persisted

import (
	"strconv"
	"sync"

	"github.com/sluicegate/sluice/gateway/graphql/request"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// A kind is what a hole takes.
type kind uint8

const (
	text    kind = iota // anything, as a string
	integer             // a 32-bit integer
	number
	boolean
)

// A piece is a run of bytes, and the hole behind it.
type piece struct {
	before   []byte
	value    *vars.Template // what goes into the hole; nil: there is none
	kind     kind
	variable string // that the hole is in
	counted  bool   // value is known only once the request has been counted
}

// A work is the scratch for building one body.
type work struct {
	values  [maxSegments][]byte // of the path's parameters
	decoded []byte              // holds them
	text    []byte              // what goes into a hole
}

var works = sync.Pool{New: func() any { return new(work) }}

// build makes ex.Outgoing.Body the body of a route.
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
		if piece.counted && len(w.text) == 0 && !ex.Counted && ex.Grant != nil {
			w.text = append(w.text, '0') // what will be there is made when the request has been counted
		}
		var ok bool
		if body, ok = piece.kind.append(body, w.text); !ok {
			return piece.refuse(w.text)
		}
	}
	ex.BodyBuf, ex.Outgoing.Body = body, body
	return nil
}

// parameters returns the values of the path's parameters, without any escapes.
func (w *work) parameters(r *route, p *parts) [][]byte {
	w.decoded = w.decoded[:0]
	for i, segment := range r.params {
		start := len(w.decoded)
		w.decoded = appendDecoded(w.decoded, p.at[segment])
		w.values[i] = w.decoded[start:] // may lie in what decoded was before it grew
	}
	return w.values[:len(r.params)]
}

// appendDecoded appends a segment. Paths come with the escapes that matter to
// matching left in; every percent sign begins one.
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

// append appends what goes into a hole as JSON. It returns false when the text
// stands for no value of the kind.
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

// isNumber tells whether a text is a number and nothing else, as JSON has them.
func isNumber(value []byte) bool {
	s := jsonscan.New(value, 0)
	v := s.Value()
	return v.Kind == jsonscan.Number && len(v.Raw) == len(value)
}

// maxEcho bounds what of a value a refusal repeats, in bytes.
const maxEcho = 200

var expected = [...]string{
	integer: "Int cannot represent non-integer value: ",
	number:  "Float cannot represent non numeric value: ",
	boolean: "Boolean cannot represent a non boolean value: ",
}

// refuse refuses a call whose text stands for no value of the hole's kind.
func (p *piece) refuse(value []byte) *pipeline.Rejection {
	if len(value) > maxEcho {
		value = append(append([]byte(nil), value[:maxEcho]...), "..."...)
	}
	shown := string(jsonscan.AppendString(nil, value))
	return request.Invalid(400, `Variable "$`+p.variable+`" got invalid value `+shown+"; "+expected[p.kind]+shown)
}
