package auth

import (
	"encoding/binary"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// readySessions is how many sessions are kept ready for requests when nothing
// else is said: about as many as a collection of garbage looks through in some
// tens of milliseconds.
const readySessions = 1 << 16

// A packed entry is a record of a table that no collection of garbage looks
// through:
//
//	loaded  8 bytes
//	mark    2 times 4 bytes
//	slot    2 bytes
//	length  2 bytes, of the credential
//	flags   1 byte, in it the kind of what it was looked up as
//	org     its length, and the organisation in whose name it was looked up
//	text    its length, and the entry's
//	session the rest
//
// Numbers are little-endian.
const packedHead = 8 + 4 + 4 + 2 + 2 + 1

// kindShift is where among the flags of a record the kind of its scope begins.
const kindShift = 6

// pack appends the entry's record to b. Grants are left out: they are made again.
func (e *entry) pack(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(e.loaded))
	b = binary.LittleEndian.AppendUint32(b, e.mark.all)
	b = binary.LittleEndian.AppendUint32(b, e.mark.slot)
	b = binary.LittleEndian.AppendUint16(b, e.slot)
	b = binary.LittleEndian.AppendUint16(b, e.length)
	b = append(b, byte(e.flags.Load()&(isClear|isRetiring)|uint32(e.scope.kind)<<kindShift))
	b = append(binary.AppendUvarint(b, uint64(len(e.scope.org))), e.scope.org...)
	b = append(binary.AppendUvarint(b, uint64(len(e.text))), e.text...)
	return e.session.Pack(b)
}

// loadedOf returns when a packed entry was loaded.
func loadedOf(record []byte) time.Duration {
	return time.Duration(binary.LittleEndian.Uint64(record))
}

// take takes a text off the front of b.
func take(b []byte) (text, rest []byte) {
	length, n := binary.Uvarint(b)
	end := n + int(length)
	return b[n:end], b[end:]
}

// A packed entry in parts, which are parts of its record.
type parts struct {
	org, text, session []byte
	length             int // of the credential
	flags              uint32
}

// partsOf returns the parts of a record if it is that of the credential.
func partsOf(record, token []byte, sc *scope) (p parts, is bool) {
	var rest []byte
	p.org, rest = take(record[packedHead:])
	p.text, p.session = take(rest)
	p.length, p.flags = int(binary.LittleEndian.Uint16(record[18:])), uint32(record[20])
	is = string(p.text[len(p.text)-p.length:]) == string(token) && string(p.org) == sc.org && kind(p.flags>>kindShift) == sc.kind
	return p, is
}

// fill makes e, which is empty, the entry of a record but for its text and session.
func (e *entry) fill(record []byte, p *parts, sc *scope) {
	e.scope, e.loaded, e.length = sc, loadedOf(record), uint16(p.length)
	e.mark = mark{all: binary.LittleEndian.Uint32(record[8:]), slot: binary.LittleEndian.Uint32(record[12:])}
	e.slot = binary.LittleEndian.Uint16(record[16:])
	e.flags.Store(p.flags & (isClear | isRetiring))
}

// unpack returns the entry of a record if it is that of the credential, else nil.
func unpack(record, token []byte, sc *scope) *entry {
	p, is := partsOf(record, token, sc)
	if !is {
		return nil
	}
	unpacked, err := definition.UnpackSession(p.session)
	if err != nil {
		return nil // it is looked up again
	}
	e := &entry{text: string(p.text)}
	e.fill(record, &p, sc)
	e.hold(unpacked)
	return e
}

// find returns the packed entry of a hash, or nil. The caller holds the shard's
// lock, at least for reading; the record may be read without it.
func (sh *shard) find(hash uint64) []byte {
	if !sh.packs {
		return nil
	}
	i := sh.packed.Find(hash)
	if i < 0 {
		return nil
	}
	sh.packed.Use(i)
	return sh.packed.Record(i)
}

// prepare makes a packed entry ready for requests, if it is that of the
// credential.
func (sh *shard) prepare(hash uint64, record, token []byte, sc *scope) *entry {
	e := unpack(record, token, sc)
	if e == nil {
		return nil
	}
	sh.unpacked.Add(1)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if other := sh.entries.find(hash); other != nil && other.isOf(token, sc) {
		return other // of a request that was faster
	}
	if now := sh.find(hash); now != nil && &now[0] == &record[0] { // else it was dropped, or changed, or has moved
		sh.ready(hash, e)
	}
	return e
}

// ready keeps an entry ready for requests, in place of the one that was found by
// the same hash, or else of one that has not been used for a while. The caller
// holds the shard's lock.
func (sh *shard) ready(hash uint64, e *entry) {
	if sh.entries.find(hash) != nil {
		e.flags.Or(isUsed)
	} else if sh.entries.n >= sh.most {
		gone := sh.entries.evict()
		sh.find(gone) // which is of more use than one that was not used since long before
	}
	sh.entries.set(hash, e)
}

// keepPacked keeps the record of an entry, in place of the one that was found by
// the same hash, or else of one that has not been used for a while and is not
// ready either: whatever is ready is packed as well. The caller holds the shard's
// lock.
func (sh *shard) keepPacked(hash uint64, record []byte) {
	if i := sh.packed.Find(hash); i >= 0 {
		sh.packed.Replace(i, record)
		return
	}
	for sh.packed.Len() >= sh.mostPacked {
		i := sh.packed.Unused()
		if sh.entries.find(sh.packed.Hash(i)) == nil {
			sh.packed.Remove(i)
		} else {
			sh.packed.Use(i)
		}
	}
	sh.packed.Add(hash, record)
}
