package request

import "bytes"

// Media is a media type of responses.
type Media string

// The media types of responses.
const (
	JSON     Media = "application/json; charset=utf-8"
	Response Media = "application/graphql-response+json; charset=utf-8"
)

// Strict reports whether the media type is the one whose clients rely on the
// status code.
func (m Media) Strict() bool { return m == Response }

// A preference is the weight of a media type, in thousandths, and the precision of
// the range that matched: 0 for none, 3 for the exact name.
type preference struct {
	weight int
	exact  uint8
}

func (p *preference) set(weight int, exact uint8) {
	if exact > p.exact || exact == p.exact && weight > p.weight {
		p.weight, p.exact = weight, exact
	}
}

// acceptance holds the preferences of the Accept lines for our media types.
type acceptance struct {
	given                  bool
	json, response, stream preference
}

// add parses one Accept line.
func (a *acceptance) add(value []byte) {
	for len(value) > 0 {
		var one []byte
		one, value = element(value)
		kind, params, _ := bytes.Cut(one, []byte{';'})
		kind = trim(kind)
		if len(kind) == 0 {
			continue
		}
		a.given = true
		weight := weightOf(params)
		switch {
		case is(kind, "application/json"):
			a.json.set(weight, 3)
		case is(kind, "application/graphql-response+json"):
			a.response.set(weight, 3)
		case is(kind, "text/event-stream"):
			a.stream.set(weight, 3)
		case is(kind, "application/*"):
			a.json.set(weight, 2)
			a.response.set(weight, 2)
		case is(kind, "*/*"):
			a.json.set(weight, 1)
			a.response.set(weight, 1)
		}
	}
}

// trim removes blanks from both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// element cuts the first element off a list. Commas in quotes do not end it.
func element(list []byte) (first, rest []byte) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return list[:i], list[i+1:]
		}
	}
	return list, nil
}

// weightOf returns the q parameter of a media range, 1 if it is missing or invalid.
func weightOf(params []byte) int {
	for len(params) > 0 {
		var one []byte
		one, params, _ = bytes.Cut(params, []byte{';'})
		name, value, _ := bytes.Cut(trim(one), []byte{'='})
		if is(name, "q") {
			return thousandths(value)
		}
	}
	return 1000
}

// thousandths parses a weight such as 0.5.
func thousandths(b []byte) int {
	if len(b) == 0 || b[0] != '0' && b[0] != '1' {
		return 1000
	}
	weight, unit := int(b[0]-'0')*1000, 100
	if len(b) > 1 && b[1] == '.' {
		for _, c := range b[2:] {
			if c-'0' > 9 {
				break
			}
			weight += int(c-'0') * unit
			unit /= 10
		}
	}
	return min(weight, 1000)
}

// choose sets the media type of the response: the preferred one, plain JSON if
// both have the same weight.
func (h *Head) choose() {
	h.Media = JSON
	a := &h.accept
	if !a.given {
		return
	}
	h.Stream = a.stream.weight > 0
	if a.response.weight > a.json.weight {
		h.Media = Response
	}
	neither := a.json.weight == 0 && a.response.weight == 0
	h.Only, h.Refused = neither && h.Stream, neither && !h.Stream
}
