package version

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// A param names the version in the first query parameter of its name.
type param struct {
	name     string // decoded
	stripped bool
}

func (p *param) read(ex *pipeline.Exchange) []byte {
	for rest := ex.Query(); len(rest) > 0; {
		var pair []byte
		pair, rest, _ = bytes.Cut(rest, ampersand)
		if key, value, _ := bytes.Cut(pair, equals); isNamed(key, p.name) {
			return unescaped(ex, value)
		}
	}
	return nil
}

// strip takes every parameter of the name out of the query.
func (p *param) strip(ex *pipeline.Exchange, _ bool) (leads bool) {
	if !p.stripped {
		return false
	}
	query := ex.Query()
	out := ex.Outgoing.Query[:0] // may be what is read: it is written behind that
	for rest := query; len(rest) > 0; {
		var pair []byte
		pair, rest, _ = bytes.Cut(rest, ampersand)
		key, _, _ := bytes.Cut(pair, equals)
		if isNamed(key, p.name) {
			continue
		}
		if len(out) > 0 {
			out = append(out, '&')
		}
		out = append(out, pair...)
	}
	ex.Outgoing.Query, ex.Outgoing.HasQuery = out, true
	return false
}

func (p *param) place() string { return "query parameter " + p.name }

var (
	ampersand = []byte{'&'}
	equals    = []byte{'='}
)

// isNamed tells whether the encoded name of a parameter is name. A client cannot
// hide the parameter by encoding its name.
func isNamed(encoded []byte, name string) bool {
	at := 0
	for i := 0; i < len(encoded); at++ {
		c, width := decoded(encoded[i:])
		if at == len(name) || name[at] != c {
			return false
		}
		i += width
	}
	return at == len(name)
}

// unescaped decodes a value, into ex.Buf where that makes a difference.
func unescaped(ex *pipeline.Exchange, value []byte) []byte {
	if bytes.IndexByte(value, '%') < 0 && bytes.IndexByte(value, '+') < 0 {
		return value
	}
	out := ex.Buf[:0]
	for i := 0; i < len(value); {
		c, width := decoded(value[i:])
		out = append(out, c)
		i += width
	}
	ex.Buf = out
	return out
}

// decoded returns the first octet of a text from a query, and how many bytes
// stand for it. What is no escape stands for itself.
func decoded(text []byte) (octet byte, width int) {
	switch {
	case text[0] == '+':
		return ' ', 1
	case text[0] != '%' || len(text) < 3:
		return text[0], 1
	}
	high, low := hexValue(text[1]), hexValue(text[2])
	if high < 0 || low < 0 {
		return '%', 1
	}
	return byte(high<<4 | low), 3
}

func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
