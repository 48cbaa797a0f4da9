package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Bounds of an answer, in bytes.
const (
	firstRoom = 4 << 10  // what is read at once at first
	mostLine  = 1 << 10  // of a line: a length, a state or a refusal
	mostText  = 64 << 10 // of a text: four times what the longest flight is answered
)

var errProtocol = errors.New("the store does not speak as one")

// appendScript appends the call of a script.
func appendScript(b []byte, sha string, keys []string, argument []byte) []byte {
	b = appendLength(b, '*', len(keys)+4)
	b = appendText(b, "EVALSHA")
	b = appendText(b, sha)
	var digits [20]byte
	count := strconv.AppendInt(digits[:0], int64(len(keys)), 10)
	b = appendText(b, count)
	for _, key := range keys {
		b = appendText(b, key)
	}
	return appendText(b, argument)
}

func appendCommand(b []byte, command ...string) []byte {
	b = appendLength(b, '*', len(command))
	for _, text := range command {
		b = appendText(b, text)
	}
	return b
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(append(appendLength(b, '$', len(text)), text...), '\r', '\n')
}

func appendLength(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), '\r', '\n')
}

// parse reads an answer at the beginning of b: a text, a state, or a refusal,
// which is an error. reply is a part of b; size is how long all is, 0 while more must
// come. Any other error means that nothing further can be understood.
func parse(b []byte) (reply []byte, size int, err error) {
	if len(b) == 0 {
		return nil, 0, nil
	}
	kind, end := b[0], bytes.IndexByte(b[:min(len(b), mostLine)], '\n')
	switch {
	case kind != '$' && kind != '+' && kind != '-':
		return nil, 0, fmt.Errorf("%w: its answer begins with %q", errProtocol, kind)
	case end < 0 && len(b) >= mostLine:
		return nil, 0, fmt.Errorf("%w: its answer has a line of more than %d bytes", errProtocol, mostLine)
	case end < 0:
		return nil, 0, nil
	case b[end-1] != '\r':
		return nil, 0, fmt.Errorf("%w: a line of its answer has no proper end", errProtocol)
	}
	line, size := b[1:end-1], end+1
	switch kind {
	case '+':
		return line, size, nil
	case '-':
		return nil, size, Refusal(line)
	}
	return parseText(b, line, size)
}

// parseText reads the text whose length a line told, and that begins at from.
func parseText(b, line []byte, from int) (reply []byte, size int, err error) {
	length, err := strconv.Atoi(string(line))
	if err != nil || length < 0 || length > mostText || line[0] == '+' {
		return nil, 0, fmt.Errorf("%w: length %q of its answer, want 0 to %d", errProtocol, line, mostText)
	}
	end := from + length
	switch {
	case len(b) < end+2:
		return nil, 0, nil
	case b[end] != '\r' || b[end+1] != '\n':
		return nil, 0, fmt.Errorf("%w: its answer is not as long as it said", errProtocol)
	}
	return b[from:end], end + 2, nil
}
