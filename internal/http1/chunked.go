package http1

// Chunks decodes a body in the chunked transfer coding (RFC 9112 section 7.1), in
// pieces of any size. It accepts no deviation from the grammar: CRLF ends every
// line, an extension follows a semicolon, a trailer is a valid header line.
// Extensions and trailers are dropped. The zero value is at the start of a body.
type Chunks struct {
	// MaxTrailer is how many bytes all trailers may have; 0 means 8 KiB.
	MaxTrailer int

	state   chunkState
	left    int64 // bytes left of the current chunk's data
	line    int   // bytes of the size line after its digits
	digits  int
	trailer int // bytes of all trailers so far
}

type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkBlank
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
	maxSizeLine       = 256     // bytes of a size line after its digits
	defaultMaxTrailer = 8 << 10 // bytes of all trailers
)

// ChunkError says what is wrong with a chunked body.
type ChunkError string

// Error implements error.
func (e ChunkError) Error() string { return string(e) }

// Done reports whether the body has ended.
func (k *Chunks) Done() bool { return k.state == chunksDone }

// Left returns how many bytes of the current chunk's data are still to come, or 0
// outside a chunk's data.
func (k *Chunks) Left() int64 {
	if k.state != chunkData {
		return 0
	}
	return k.left
}

// Skip records that the caller took n bytes, at most Left, of the current chunk's
// data without Next.
func (k *Chunks) Skip(n int64) {
	if k.left -= n; k.left == 0 {
		k.state = chunkDataCR
	}
}

// Next consumes bytes of b, at most up to the end of the body. It returns the first
// data it finds, at most limit bytes, which alias b, and how many bytes of b it
// used. Without data it has used all of b or the body is done. The error is a
// ChunkError.
func (k *Chunks) Next(b []byte, limit int) (data []byte, used int, err error) {
	for used < len(b) && k.state != chunksDone {
		if k.state == chunkData {
			n := min(k.left, int64(len(b)-used), int64(limit))
			if n == 0 {
				return nil, used, nil
			}
			k.Skip(n)
			return b[used : used+int(n)], used + int(n), nil
		}
		if err := k.step(b[used]); err != nil {
			return nil, used, err
		}
		used++
	}
	return nil, used, nil
}

// step consumes one byte that is not data.
func (k *Chunks) step(c byte) error {
	switch k.state {
	case chunkSize:
		return k.size(c)
	case chunkBlank, chunkExtension:
		return k.extension(c)
	case chunkSizeLF:
		if c != '\n' {
			return ChunkError("chunk size line")
		}
		k.state = chunkData
		if k.left == 0 {
			k.state = trailerStart
		}
		k.digits, k.line = 0, 0
		return nil
	case chunkDataCR:
		if c != '\r' {
			return ChunkError("chunk longer than its size")
		}
		k.state = chunkDataLF
		return nil
	case chunkDataLF:
		if c != '\n' {
			return ChunkError("chunk longer than its size")
		}
		k.state = chunkSize
		return nil
	}
	return k.trailers(c)
}

func (k *Chunks) size(c byte) error {
	v := hexValue(c)
	switch {
	case v >= 0 && k.digits < 15:
		k.left = k.left<<4 | int64(v)
		k.digits++
		return nil
	case v >= 0 || k.digits == 0:
		return ChunkError("chunk size")
	}
	k.state = chunkBlank
	return k.extension(c)
}

func (k *Chunks) extension(c byte) error {
	k.line++
	switch {
	case c == '\r':
		k.state = chunkSizeLF
		return nil
	case k.line > maxSizeLine || isControl(c):
		return ChunkError("chunk extension")
	case c == ';':
		k.state = chunkExtension
	case k.state == chunkBlank && c != ' ' && c != '\t':
		return ChunkError("chunk size")
	}
	return nil
}

func (k *Chunks) trailers(c byte) error {
	limit := k.MaxTrailer
	if limit == 0 {
		limit = defaultMaxTrailer
	}
	if k.trailer++; k.trailer > limit {
		return ChunkError("trailers too large")
	}
	switch {
	case k.state == trailerStart && c == '\r':
		k.state = trailerEnd
	case k.state <= trailerName && IsTokenByte(c):
		k.state = trailerName
	case k.state == trailerName && c == ':':
		k.state = trailerLine
	case k.state <= trailerName:
		return ChunkError("trailer")
	case k.state == trailerLine && c == '\r':
		k.state = trailerLF
	case k.state == trailerLF && c == '\n':
		k.state = trailerStart
	case k.state == trailerEnd && c == '\n':
		k.state = chunksDone
	case k.state >= trailerLF || isControl(c):
		return ChunkError("trailer")
	}
	return nil
}

// isControl reports whether c is a control character other than a tab.
func isControl(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }

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
