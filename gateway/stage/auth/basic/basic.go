// Package basic reads the credentials of HTTP basic authentication (RFC 7617) and checks
// passwords. A password that was correct lately is not hashed again, and guesses are
// throttled.
package basic

import (
	"bytes"
	"encoding/base64"
)

// A Fault is what is wrong with the syntax of credentials.
type Fault uint8

// The faults.
const (
	Sound     Fault = iota
	NotWords        // NotWords means that the value is not the scheme and one more word.
	NotBase64       // NotBase64 means that the second word cannot be decoded.
	NotPair         // NotPair means that it is not a name and a password with one colon between them.
)

var scheme = []byte("basic")

// Decode appends the user name, a colon and the password of a header's value to dst, and
// returns the index of the colon. It does not allocate if dst has the capacity; dst must
// not alias value.
//
// A colon in the password and control characters are refused: RFC 7617 excludes the
// latter, and other parsers of the header might stop at either.
func Decode(dst, value []byte) (all []byte, colon int, fault Fault) {
	word, rest := cutWord(value)
	encoded, rest := cutWord(rest)
	if len(encoded) == 0 || len(rest) > 0 || !bytes.EqualFold(word, scheme) {
		return dst, 0, NotWords
	}
	start := len(dst)
	all, err := base64.StdEncoding.AppendDecode(dst, encoded)
	if err != nil {
		return dst, 0, NotBase64
	}
	pair := all[start:]
	at := bytes.IndexByte(pair, ':')
	if at < 0 || bytes.IndexByte(pair[at+1:], ':') >= 0 || hasControl(pair) {
		return dst, 0, NotPair
	}
	return all, start + at, Sound
}

// cutWord returns the first word of a text, and the rest without leading blanks.
func cutWord(text []byte) (word, rest []byte) {
	text = skipBlanks(text)
	end := bytes.IndexAny(text, " \t")
	if end < 0 {
		return text, nil
	}
	return text[:end], skipBlanks(text[end:])
}

func skipBlanks(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	return text
}

func hasControl(text []byte) bool {
	for _, c := range text {
		if c < 0x20 || c == 0x7f {
			return true
		}
	}
	return false
}
