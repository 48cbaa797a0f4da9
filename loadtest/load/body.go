// Package load is a load generator that holds every answer against what the
// origin of the load tests sends: status, length and all of the body.
package load

import "bytes"

// bodies are what the origin answers with, by the last segment of the path.
var bodies = map[string][]byte{
	"1k":  pattern(1 << 10),
	"16k": pattern(16 << 10),
	"64k": pattern(64 << 10),

	"graphql": []byte(answer),
}

// pattern returns n bytes of which no two neighbouring kilobytes are equal, so
// that a body put together wrongly does not pass for a right one.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte((i*7+i>>10)%26)
	}
	return b
}

// Body returns the body for a path such as "/any/1k". It must not be changed.
func Body(path []byte) ([]byte, bool) {
	b, ok := bodies[string(path[bytes.LastIndexByte(path, '/')+1:])]
	return b, ok
}
