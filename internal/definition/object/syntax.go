package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deep objects and arrays may nest in what is read.
const maxDepth = 64

// Check returns what keeps data from being one JSON value of at most most
// bytes, saying where. Afterwards data can be walked without further checks.
func Check(data []byte, most int) *Fault {
	if len(data) > most {
		return &Fault{Message: SizeMessage(len(data), most)}
	}
	if !utf8.Valid(data) {
		at := 0
		for r, n := utf8.DecodeRune(data); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(data[at:]) {
			at += n
		}
		return problemAt(data, at, "is not UTF-8")
	}
	if at := tooDeep(data); at >= 0 {
		return problemAt(data, at, "nests deeper than the "+strconv.Itoa(maxDepth)+" levels that are read")
	}
	if json.Valid(data) {
		return nil
	}
	var ignored json.RawMessage
	err := json.Unmarshal(data, &ignored)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return problemAt(data, int(syntax.Offset)-1, "is not JSON: "+syntax.Error())
	}
	return &Fault{Message: "is not JSON"}
}

// problemAt says where in data something is wrong, counting bytes from 1.
func problemAt(data []byte, at int, what string) *Fault {
	at = min(max(at, 0), len(data))
	line := 1 + bytes.Count(data[:at], []byte{'\n'})
	column := at - bytes.LastIndexByte(data[:at], '\n')
	return &Fault{Message: "line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column) + " " + what}
}

// tooDeep returns where data nests deeper than maxDepth, or -1. It need not be
// valid JSON.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = stringEnd(data, i) - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// stringEnd returns the index behind the string that begins at data[start].
func stringEnd(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// valueEnd returns the index behind the value that begins at data[start], in
// valid JSON.
func valueEnd(data []byte, start int) int {
	depth := 0
	for i := start; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = stringEnd(data, i) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(data)
}

// SizeMessage says that something is larger than what is read, both in bytes.
func SizeMessage(size, most int) string {
	return fmt.Sprintf("is %d bytes; at most %d are read", size, most)
}
