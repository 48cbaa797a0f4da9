package auth

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// cutPair returns the first pair of a query string, its name, and the pairs that
// follow. Name and pair are as the client wrote them.
func cutPair(query []byte) (pair, name, rest []byte) {
	before, after, ok := bytes.Cut(query, []byte{'&'})
	if !ok {
		pair = query
	} else {
		pair, rest = before, after
	}
	name = pair
	if before, _, ok := bytes.Cut(pair, []byte{'='}); ok {
		name = before
	}
	return pair, name, rest
}

// parameterOf returns the value of the first parameter of a name, nil when there
// is none or it cannot be decoded. It aliases the query or ex.TokenBuf.
func parameterOf(ex *pipeline.Exchange, name string) []byte {
	for query := ex.Call.Query; len(query) > 0; {
		var pair, written []byte
		pair, written, query = cutPair(query)
		if !isNamed(written, name) {
			continue
		}
		if len(written) == len(pair) {
			return nil // without a value
		}
		value := pair[len(written)+1:]
		if bytes.IndexByte(value, '%') < 0 && bytes.IndexByte(value, '+') < 0 {
			return value
		}
		decoded, ok := appendDecoded(ex.TokenBuf[:0], value)
		ex.TokenBuf = decoded
		if !ok {
			return nil
		}
		return decoded
	}
	return nil
}

// isNamed tells whether a name as it is written in a query stands for name.
func isNamed(written []byte, name string) bool {
	if string(written) == name {
		return true
	}
	if len(written) < len(name) {
		return false
	}
	at := 0
	for len(written) > 0 {
		c, size, ok := decodeOne(written)
		if !ok || at == len(name) || c != name[at] {
			return false
		}
		at++
		written = written[size:]
	}
	return at == len(name)
}

// appendDecoded appends what a form-encoded text stands for, as far as it can be
// decoded.
func appendDecoded(dst, text []byte) ([]byte, bool) {
	for len(text) > 0 {
		c, size, ok := decodeOne(text)
		if !ok {
			return dst, false
		}
		dst = append(dst, c)
		text = text[size:]
	}
	return dst, true
}

// decodeOne decodes the first byte of a form-encoded text, which is not empty,
// and returns how many it was written with.
func decodeOne(text []byte) (c byte, size int, ok bool) {
	switch text[0] {
	case '+':
		return ' ', 1, true
	case '%':
		if len(text) < 3 {
			return 0, 0, false
		}
		high, low := hexValue[text[1]], hexValue[text[2]]
		return (high-1)<<4 | (low - 1), 3, high != 0 && low != 0
	}
	return text[0], 1, true
}

// hexValue holds what a hexadecimal digit is worth, and one more; 0 for what is
// none.
var hexValue = func() (all [256]byte) {
	for i, c := range "0123456789abcdef" {
		all[c] = byte(i + 1)
	}
	for i, c := range "ABCDEF" {
		all[c] = byte(i + 11)
	}
	return all
}()

// stripParameter takes every parameter of a name out of the query that goes
// upstream: the upstream might read another than the first.
func stripParameter(ex *pipeline.Exchange, name string) {
	query := ex.Query()
	if !hasParameter(query, name) {
		return
	}
	kept := ex.Outgoing.Query[:0] // perhaps in place: less is written than was read
	for first := true; len(query) > 0; {
		var pair, written []byte
		pair, written, query = cutPair(query)
		if isNamed(written, name) {
			continue
		}
		if !first {
			kept = append(kept, '&')
		}
		first = false
		kept = append(kept, pair...)
	}
	ex.Outgoing.Query, ex.Outgoing.HasQuery = kept, true
}

func hasParameter(query []byte, name string) bool {
	for len(query) > 0 {
		var written []byte
		_, written, query = cutPair(query)
		if isNamed(written, name) {
			return true
		}
	}
	return false
}
