package credential

import (
	"bytes"
	"encoding/base64"
)

// maxForm is the longest token that may have the base64 form, in bytes.
const maxForm = 512

// Named returns the hash that a token asks for, if it is the base64 of
// {"org":…,"id":…,"h":…}: the form of keys that were made under other hashes. A missing
// name means murmur32. What a token asks for is the caller's word: it decides nothing
// unless the operator allows that hash. Named does not allocate.
func Named(token []byte) (name Name, ok bool) {
	if len(token) < 4 || len(token) > maxForm || token[0] != 'e' { // '{' begins with e
		return 0, false
	}
	var buf [maxForm]byte
	n, err := base64.StdEncoding.Decode(buf[:], token)
	if err != nil {
		if n, err = base64.RawStdEncoding.Decode(buf[:], token); err != nil {
			return 0, false
		}
	}
	f, ok := parseForm(buf[:n])
	if !ok {
		return 0, false
	}
	switch string(f.hash) {
	case "", "murmur32":
		return Name(Murmur32), true
	case "murmur64":
		return Name(Murmur64), true
	case "murmur128":
		return Name(Murmur128), true
	case "sha256":
		return Name(SHA256), true
	}
	return unknownName, true
}

// A Name is the hash that a token asks for: an Algorithm, or an unknown one.
type Name uint8

const unknownName Name = 255

// String returns the name of the hash.
func (n Name) String() string {
	if n == unknownName {
		return "an unknown hash"
	}
	return Algorithm(n).String()
}

// A form is the content of a key in base64 form; it aliases the parsed text.
type form struct{ org, id, hash []byte }

// parseForm reads a JSON object of strings without escapes, which all keys of this
// form are; id is required. It does not allocate: its result is assigned here and no
// deeper, or data would escape.
func parseForm(data []byte) (f form, ok bool) {
	rest, ok := token(data, '{')
	for first := true; ok; first = false {
		if end, closed := token(rest, '}'); closed {
			return f, len(space(end)) == 0 && len(f.id) > 0
		}
		if !first {
			rest, ok = token(rest, ',')
		}
		var name, value []byte
		if ok {
			name, value, rest, ok = member(rest)
		}
		switch string(name) {
		case "org":
			ok = ok && f.org == nil
			f.org = value
		case "id":
			ok = ok && f.id == nil
			f.id = value
		case "h":
			ok = ok && f.hash == nil
			f.hash = value
		default:
			return form{}, false
		}
	}
	return form{}, false
}

// member skips a member whose value is a string.
func member(data []byte) (name, value, rest []byte, ok bool) {
	if name, rest, ok = text(data); !ok {
		return nil, nil, rest, false
	}
	if rest, ok = token(rest, ':'); !ok {
		return nil, nil, rest, false
	}
	value, rest, ok = text(rest)
	return name, value, rest, ok
}

func space(data []byte) []byte { return bytes.TrimLeft(data, " \t\r\n") }

// token skips c and the white space before it.
func token(data []byte, c byte) (rest []byte, ok bool) {
	data = space(data)
	if len(data) == 0 || data[0] != c {
		return data, false
	}
	return data[1:], true
}

// text skips a string.
func text(data []byte) (value, rest []byte, ok bool) {
	data, ok = token(data, '"')
	if !ok {
		return nil, data, false
	}
	for i, c := range data {
		switch {
		case c == '"':
			return data[:i:i], data[i+1:], true
		case c == '\\' || c < 0x20:
			return nil, data, false
		}
	}
	return nil, data, false
}
