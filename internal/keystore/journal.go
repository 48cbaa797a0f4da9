package keystore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/sluicegate/sluice/internal/definition"
)

// A journal is a file of frames. One that is not complete is ignored:
//
//	magic    4 bytes
//	length   4 bytes, little-endian, of the payload
//	checksum 4 bytes, CRC-32C of number and payload
//	number   8 bytes, one more than that of the frame before; the first is 1
//	payload  records, each JSON on a line of its own
const (
	magic      = "SlK1"
	headerSize = 20
	maxFrame   = 64 << 20 // the largest payload, in bytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A record is one change. A null session deletes the key.
type record struct {
	Hash    string              `json:"hash"`
	Session *definition.Session `json:"session"`
}

// CorruptError means that a journal is damaged before its end, so that acknowledged
// changes may be missing. The file is unchanged.
type CorruptError struct {
	Path   string
	Offset int64 // bytes before it are intact
}

// Error returns what is wrong and what to do.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d, before its end: restore it from a backup, or cut it there to give up what follows", e.Path, e.Offset)
}

// appendFrame writes a frame around the records that payload holds.
func appendFrame(b []byte, number uint64, payload []byte) []byte {
	start := len(b)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, number)
	b = append(b, payload...)
	sum := crc32.Checksum(b[start+12:], castagnoli)
	binary.LittleEndian.PutUint32(b[start+8:], sum)
	return b
}

// line returns the encoded record.
func (r record) line() ([]byte, error) {
	line, err := json.Marshal(r)
	switch {
	case err != nil:
		return nil, fmt.Errorf("session of key %.12s: %w", r.Hash, err)
	case len(line) >= maxFrame-maxBatch:
		return nil, fmt.Errorf("session of key %.12s: %d bytes are too many", r.Hash, len(line))
	}
	return append(line, '\n'), nil
}

// A replay is what reading a journal found.
type replay struct {
	end     int64  // bytes of whole frames
	torn    int64  // bytes after them that a crash left
	number  uint64 // of the last frame
	records int
}

var errBadFrame = errors.New("not a whole frame")

// readJournal calls apply with every record of a journal. Damage at its end, as a crash
// leaves of changes that were not acknowledged, is returned in torn; damage before its
// end is a CorruptError.
func readJournal(f *os.File, apply func(record)) (replay, error) {
	var found replay
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		payload, err := readFrame(in, found.number+1)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if errors.Is(err, errBadFrame) {
			return found.atDamage(f)
		}
		if err != nil {
			return found, fmt.Errorf("reading %s: %w", f.Name(), err)
		}
		for line := range bytes.Lines(payload) {
			var r record
			if err := json.Unmarshal(line, &r); err != nil {
				return found, fmt.Errorf("%s, frame %d: %w", f.Name(), found.number+1, err)
			}
			apply(r)
			found.records++
		}
		found.number++
		found.end += headerSize + int64(len(payload))
	}
}

// readFrame reads the frame with that number. The error is io.EOF at the end of the
// file, and errBadFrame for anything else than the frame.
func readFrame(in *bufio.Reader, number uint64) ([]byte, error) {
	var header [headerSize]byte
	n, err := io.ReadFull(in, header[:])
	switch {
	case n == 0:
		return nil, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errBadFrame
	case err != nil:
		return nil, err
	}
	size := binary.LittleEndian.Uint32(header[4:])
	if string(header[:4]) != magic || size > maxFrame || binary.LittleEndian.Uint64(header[12:]) != number {
		return nil, errBadFrame
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(in, payload); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, errBadFrame
	} else if err != nil {
		return nil, err
	}
	sum := crc32.Update(crc32.Checksum(header[12:], castagnoli), castagnoli, payload)
	if sum != binary.LittleEndian.Uint32(header[8:]) {
		return nil, errBadFrame
	}
	return payload, nil
}

// atDamage distinguishes an incomplete end from damage in the middle, which has a later
// complete frame behind it.
func (found replay) atDamage(f *os.File) (replay, error) {
	rest, err := io.ReadAll(io.NewSectionReader(f, found.end, 1<<62))
	if err != nil {
		return found, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	for at := 1; at < len(rest); at++ {
		next := bytes.Index(rest[at:], []byte(magic))
		if next < 0 {
			break
		}
		at += next
		if len(rest)-at < headerSize {
			break
		}
		number := binary.LittleEndian.Uint64(rest[at+12:])
		if number <= found.number {
			continue
		}
		if _, err := readFrame(bufio.NewReader(bytes.NewReader(rest[at:])), number); err == nil {
			return found, &CorruptError{Path: f.Name(), Offset: found.end}
		}
	}
	found.torn = int64(len(rest))
	return found, nil
}
