// Package chunked takes bodies in the chunked transfer coding apart (RFC 9112
// section 7.1), strictly and without allocating.
package chunked

import "github.com/sluicegate/sluice/gateway/upstream/field"

// Body takes a chunked body apart, however it arrives in pieces. Extensions are
// skipped and trailers dropped, both within bounds. The zero value is at the
// beginning of one.
type Body struct {
	state   state
	left    int64 // of the chunk at hand, while in its data
	line    int   // bytes of the size line, digits excepted
	digits  int
	trailer int // bytes of all trailers
}

type state uint8

const (
	chunkSize state = iota
	chunkExtension
	chunkSizeLF
	chunkData
	chunkDataCR
	chunkDataLF
	trailerStart
	trailerName
	trailerLine
	trailerLF
	trailerEnd
	chunksDone
)

const (
	maxSizeLine = 256     // bytes of a chunk's extensions
	maxTrailer  = 8 << 10 // bytes of all trailers
)

// Error is what is wrong with a body.
type Error string

// Error says it.
func (e Error) Error() string { return string(e) }

// Done tells whether the body has ended.
func (k *Body) Done() bool { return k.state == chunksDone }

// Left returns how many bytes of the chunk at hand are still to come, 0 when none
// is known to.
func (k *Body) Left() int64 {
	if k.state != chunkData {
		return 0
	}
	return k.left
}

// Take notes that n bytes of the chunk at hand, of which so many are Left, were
// taken past Next.
func (k *Body) Take(n int64) {
	if k.left -= n; k.left == 0 {
		k.state = chunkDataCR
	}
}

// Next uses bytes from b, up to the end of the body, and returns data as soon
// as it finds some, at most limit bytes, aliasing b. When it has used all of b
// without finding any it needs more. The error is an Error.
func (k *Body) Next(b []byte, limit int) (data []byte, used int, err error) {
	for used < len(b) && k.state != chunksDone {
		if k.state == chunkData {
			n := min(k.left, int64(len(b)-used), int64(limit))
			if n == 0 {
				return nil, used, nil
			}
			k.Take(n)
			return b[used : used+int(n)], used + int(n), nil
		}
		if err := k.step(b[used]); err != nil {
			return nil, used, err
		}
		used++
	}
	return nil, used, nil
}

// step takes one byte that is not data.
func (k *Body) step(c byte) error {
	switch k.state {
	case chunkSize:
		return k.size(c)
	case chunkExtension:
		return k.extension(c)
	case chunkSizeLF:
		if c != '\n' {
			return Error("chunk size line")
		}
		k.state = chunkData
		if k.left == 0 {
			k.state = trailerStart
		}
		k.digits, k.line = 0, 0
		return nil
	case chunkDataCR:
		if c != '\r' {
			return Error("chunk longer than its size")
		}
		k.state = chunkDataLF
		return nil
	case chunkDataLF:
		if c != '\n' {
			return Error("chunk longer than its size")
		}
		k.state = chunkSize
		return nil
	}
	return k.trailers(c)
}

func (k *Body) size(c byte) error {
	v := hexValue(c)
	switch {
	case v >= 0 && k.digits < 15:
		k.left = k.left<<4 | int64(v)
		k.digits++
		return nil
	case v >= 0 || k.digits == 0:
		return Error("chunk size")
	}
	k.state = chunkExtension
	if c != ';' && c != ' ' && c != '\t' && c != '\r' {
		return Error("chunk size")
	}
	return k.extension(c)
}

func (k *Body) extension(c byte) error {
	k.line++
	switch {
	case c == '\r':
		k.state = chunkSizeLF
	case c < ' ' && c != '\t' || c == 0x7f || k.line > maxSizeLine:
		return Error("chunk extension")
	}
	return nil
}

func (k *Body) trailers(c byte) error {
	if k.trailer++; k.trailer > maxTrailer {
		return Error("trailers above 8 KiB")
	}
	switch {
	case k.state == trailerStart && c == '\r':
		k.state = trailerEnd
	case k.state <= trailerName && field.IsTokenByte(c):
		k.state = trailerName
	case k.state == trailerName && c == ':':
		k.state = trailerLine
	case k.state <= trailerName:
		return Error("trailer")
	case k.state == trailerLine && c == '\r':
		k.state = trailerLF
	case k.state == trailerLF && c == '\n':
		k.state = trailerStart
	case k.state == trailerEnd && c == '\n':
		k.state = chunksDone
	case k.state >= trailerLF, c < ' ' && c != '\t':
		return Error("trailer")
	default:
		k.state = trailerLine
	}
	return nil
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
