package http1

import (
	"bytes"
	"testing"
)

// FuzzChunks cuts a chunked body in two at every place, which must not matter.
func FuzzChunks(f *testing.F) {
	for _, s := range []string{"5\r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\nrest", "0\r\n\r\n", "zz\r\n", "fffffffffffffff\r\nx"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		whole, used, wholeDone, wholeErr := decode(b)
		if at < 0 || at > len(b) {
			return
		}
		body, n, done, err := decode(b[:at], b[at:])
		if !bytes.Equal(whole, body) || used != n || wholeDone != done || (wholeErr == nil) != (err == nil) {
			t.Errorf("cut at %d: %q %d %t %v, whole: %q %d %t %v", at, body, n, done, err, whole, used, wholeDone, wholeErr)
		}
	})
}

func decode(parts ...[]byte) (body []byte, total int, done bool, err error) {
	var k Chunks
	for _, b := range parts {
		for len(b) > 0 && !k.Done() {
			data, used, err := k.Next(b, 7)
			body = append(body, data...)
			b = b[used:]
			total += used
			if err != nil {
				return body, total, false, err
			}
		}
	}
	return body, total, k.Done(), nil
}
