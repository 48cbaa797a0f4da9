package inproc

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/disk"
)

// The journal of a topic is a folder: segments with the messages, each named after the
// number of its first one, and the cursors of the groups. A segment begins with magic. A
// record is the length of its payload and the CRC-32C of length and payload, 4 bytes each,
// little-endian, and the payload (appendRecord).
const (
	magic        = "sluice1\n"
	recordHead   = 8
	leastPayload = 8 + 8 + 4 // numbers, and lengths of what is empty
	mostPayload  = 64 << 20  // more than a message may have
	folderPrefix = "t-"
	cursorsName  = "cursors"
	segmentGlob  = "????????????????????.log" // twenty digits
	damagedEnd   = ".damaged"
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // made once by crc32

// A journal keeps the messages of one topic on disk. Its methods are called by one
// goroutine at a time: they hold mu.
type journal struct {
	folder  string
	rollAt  int64
	mu      sync.Mutex
	made    bool // the folder is there
	active  *os.File
	size    int64 // of the active segment
	buffer  []byte
	damaged bool // nothing may follow what is in the active segment

	segments []segment // the active one is the last
}

// A segment is a file with messages.
type segment struct {
	path string
	last uint64 // number of its last message
}

func newJournal(dir, org, topic string, rollAt int64) *journal {
	sum := sha256.Sum256([]byte(org + "\x00" + topic))
	return &journal{folder: filepath.Join(dir, folderPrefix+hex.EncodeToString(sum[:16])), rollAt: rollAt}
}

// cursors is the file with the groups of a topic.
type cursors struct {
	Org       string            `json:"organisation"`
	Topic     string            `json:"topic"`
	Committed uint64            `json:"last"`      // message on disk
	Groups    map[string]uint64 `json:"groups"`    // the last message before which all are settled
	Unclaimed uint64            `json:"unclaimed"` // the same of what the first group will get
}

// make makes the folder.
func (j *journal) make() error {
	if j.made {
		return nil
	}
	if err := os.Mkdir(j.folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := disk.SyncDir(filepath.Dir(j.folder)); err != nil {
		return err
	}
	j.made = true
	return nil
}

// writeCursors replaces the cursors, and removes the segments that nobody needs any more.
func (j *journal) writeCursors(c *cursors) error {
	if err := j.make(); err != nil {
		return err
	}
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := disk.WriteFile(filepath.Join(j.folder, cursorsName), data, 0o600); err != nil {
		return err
	}
	least := c.Committed
	if len(c.Groups) == 0 {
		least = c.Unclaimed
	}
	for _, cursor := range c.Groups {
		least = min(least, cursor)
	}
	for len(j.segments) > 0 && j.segments[0].last <= least && (j.active == nil || len(j.segments) > 1) {
		if err := os.Remove(j.segments[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		j.segments = j.segments[1:]
	}
	return nil
}

// append writes messages and waits until they are on disk. After an error the journal has
// none of them, or, if the class of the error is Unknown, may have them.
func (j *journal) append(entries []*entry) error {
	if j.active == nil || j.damaged || j.size >= j.rollAt {
		if err := j.roll(entries[0].seq); err != nil {
			return stream.Failf(stream.Transient, "the journal cannot be written: %w", err)
		}
	}
	j.buffer = j.buffer[:0]
	for _, e := range entries {
		j.buffer = appendRecord(j.buffer, e)
	}
	_, err := j.active.Write(j.buffer)
	length := int64(len(j.buffer))
	if cap(j.buffer) > 1<<20 {
		j.buffer = nil
	}
	if err != nil {
		j.damaged = errors.Join(j.active.Truncate(j.size), seekTo(j.active, j.size)) != nil
		return stream.Failf(stream.Transient, "the journal cannot be written: %w", err)
	}
	if err := j.active.Sync(); err != nil {
		// What is on disk now is not known, and a second fsync would not say: the next
		// messages go to another file.
		j.damaged = true
		_ = j.active.Truncate(j.size) // if it fails, the messages are there twice
		return stream.Failf(stream.Unknown, "the journal cannot be written: %w", err)
	}
	j.size += length
	j.segments[len(j.segments)-1].last = entries[len(entries)-1].seq
	return nil
}

func seekTo(f *os.File, offset int64) error {
	_, err := f.Seek(offset, io.SeekStart)
	return err
}

// roll begins a segment with the message of a number.
func (j *journal) roll(first uint64) error {
	if err := j.make(); err != nil {
		return err
	}
	path := filepath.Join(j.folder, fmt.Sprintf("%020d.log", first))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(magic)
	if err == nil {
		err = disk.SyncDir(j.folder) // its content is synced with the first messages
	}
	if err != nil {
		os.Remove(path)
		f.Close()
		return err
	}
	if j.active != nil {
		j.active.Close()
	}
	j.active, j.size, j.damaged = f, int64(len(magic)), false
	j.segments = append(j.segments, segment{path: path, last: first - 1})
	return nil
}

func (j *journal) close() {
	if j.active != nil {
		j.active.Close()
		j.active = nil
	}
}

// appendRecord appends the record of an entry: its number and time (nanoseconds since
// 1970), 8 bytes each; id, key, metadata and body, each with its length as a varint. The
// length of a key is one more than it is, 0 for none.
func appendRecord(to []byte, e *entry) []byte {
	start := len(to)
	to = append(to, make([]byte, recordHead)...)
	to = binary.LittleEndian.AppendUint64(to, e.seq)
	to = binary.LittleEndian.AppendUint64(to, uint64(e.at.UnixNano()))
	to = appendText(to, e.id)
	if e.key == nil {
		to = append(to, 0)
	} else {
		to = append(binary.AppendUvarint(to, uint64(len(e.key))+1), e.key...)
	}
	to = binary.AppendUvarint(to, uint64(len(e.meta)))
	for _, m := range e.meta {
		to = appendText(appendText(to, m.Name), m.Value)
	}
	to = append(binary.AppendUvarint(to, uint64(len(e.body))), e.body...)
	record := to[start:]
	binary.LittleEndian.PutUint32(record, uint32(len(record)-recordHead))
	binary.LittleEndian.PutUint32(record[4:], sum(record))
	return to
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// sum returns the checksum of a record: of its length and its payload.
func sum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[:4], castagnoli()), castagnoli(), record[recordHead:])
}

// readSegment returns the messages of a segment, and how many of its bytes are intact.
func readSegment(data []byte) (entries []*entry, intact int) {
	if !bytes.HasPrefix(data, []byte(magic)) {
		return nil, 0
	}
	intact = len(magic)
	for len(data)-intact >= recordHead {
		record := data[intact:]
		length := int(binary.LittleEndian.Uint32(record))
		if length < leastPayload || length > mostPayload || length > len(record)-recordHead {
			break
		}
		record = record[:recordHead+length]
		if binary.LittleEndian.Uint32(record[4:]) != sum(record) {
			break
		}
		e, ok := readPayload(record[recordHead:])
		if !ok {
			break
		}
		entries = append(entries, e)
		intact += len(record)
	}
	return entries, intact
}

// A reader takes values off the front of a payload.
type reader struct {
	data   []byte
	failed bool
}

// bytes returns the next n bytes. It copies them: a message does not keep its segment.
func (r *reader) bytes(n uint64) []byte {
	if r.failed || n > uint64(len(r.data)) {
		r.failed = true
		return nil
	}
	taken := bytes.Clone(r.data[:n:n])
	r.data = r.data[n:]
	return taken
}

func (r *reader) length() uint64 {
	n, width := binary.Uvarint(r.data)
	if r.failed || width <= 0 {
		r.failed = true
		return 0
	}
	r.data = r.data[width:]
	return n
}

func (r *reader) text() string { return string(r.bytes(r.length())) }

func readPayload(payload []byte) (*entry, bool) {
	e := &entry{seq: binary.LittleEndian.Uint64(payload), at: time.Unix(0, int64(binary.LittleEndian.Uint64(payload[8:])))}
	r := &reader{data: payload[16:]}
	e.id = r.text()
	if n := r.length(); n > 0 {
		e.key = r.bytes(n - 1)
	}
	count := r.length()
	if count > uint64(len(r.data))/2 {
		return nil, false
	}
	for range count {
		e.meta = append(e.meta, stream.Meta{Name: r.text(), Value: r.text()})
	}
	e.body = r.bytes(r.length())
	e.size = len(payload) + entrySize
	return e, !r.failed && len(r.data) == 0 && e.seq > 0
}

// kept is what a journal had on disk.
type kept struct {
	cursors  cursors
	entries  []*entry
	segments []segment
	last     uint64 // number of the last message ever written, as far as it matters
}

// readJournal reads the folder of a topic; nil for one that was never used. The end of the
// last segment, if it was torn by a crash, is cut off. Damage elsewhere is logged, and what
// is after it in its segment is lost.
func readJournal(folder string, log *slog.Logger) (*kept, error) {
	leftovers, _ := filepath.Glob(filepath.Join(folder, disk.TempPattern))
	for _, path := range leftovers {
		os.Remove(path)
	}
	data, err := os.ReadFile(filepath.Join(folder, cursorsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // they are written before the first message
	}
	if err != nil {
		return nil, err
	}
	k := new(kept)
	if err := json.Unmarshal(data, &k.cursors); err != nil || checkTopic(k.cursors.Topic) != nil {
		return nil, fmt.Errorf("%s is damaged; the messages of its topic can be given up by removing the folder", filepath.Join(folder, cursorsName))
	}
	k.last = k.cursors.Committed
	paths, err := filepath.Glob(filepath.Join(folder, segmentGlob))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	for i, path := range paths {
		if err := k.read(path, i == len(paths)-1, log); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// read adds a segment.
func (k *kept) read(path string, last bool, log *slog.Logger) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	entries, intact := readSegment(data)
	if lost := len(data) - intact; lost > 0 {
		if last {
			log.Info("end of the journal cut off: it was written while the process was killed", "file", path, "bytes", lost)
			err = cutOff(path, int64(intact))
		} else {
			log.Error("journal damaged: what follows in the segment is lost, and kept in a copy", "file", path, "bytes", lost, "copy", path+damagedEnd)
			err = errors.Join(disk.WriteFile(path+damagedEnd, data, 0o600), cutOff(path, int64(intact)))
		}
		if err != nil {
			return err
		}
	}
	for _, e := range entries {
		if len(k.entries) > 0 && e.seq <= k.entries[len(k.entries)-1].seq {
			continue // written again after an error
		}
		k.entries = append(k.entries, e)
		k.last = max(k.last, e.seq)
	}
	k.segments = append(k.segments, segment{path: path, last: k.last})
	return nil
}

func cutOff(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(f.Truncate(size), f.Sync())
}

// commit writes what was published to the journal, one batch after the other, and gives it
// to the groups.
func (t *topic) commit() {
	for t.commitBatch() {
	}
}

func (t *topic) commitBatch() bool {
	t.mu.Lock()
	batch := t.batch
	t.batch = nil
	if len(batch) == 0 {
		t.writing = false
		t.written.Broadcast()
		t.mu.Unlock()
		return false
	}
	entries := make([]*entry, len(batch))
	for i, p := range batch {
		t.seq++
		p.entry.seq = t.seq
		entries[i] = p.entry
	}
	t.mu.Unlock()
	err := t.write(entries)

	t.mu.Lock()
	for _, e := range entries {
		t.inFlight--
		t.reserved -= e.size
		if err != nil {
			t.release(e)
			continue
		}
		t.committed = e.seq
		t.add(e)
	}
	done := t.admitQueue()
	if err == nil {
		done = append(batch, done...)
	}
	t.unlock(done)
	if err != nil {
		t.broker.log.Error("messages not accepted", "organisation", t.org.name, "topic", t.name, "messages", len(batch), "err", err)
		for _, p := range batch {
			p.end(err)
		}
	}
	return true
}

func (t *topic) write(entries []*entry) error {
	j := t.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	t.mu.Lock()
	joined, c := t.joined, t.cursors()
	t.joined = false
	t.mu.Unlock()
	// A group is on disk before the first message that is kept for it.
	if joined {
		if err := j.writeCursors(c); err != nil {
			t.mu.Lock()
			t.joined = true
			t.mu.Unlock()
			return stream.Failf(stream.Transient, "the journal cannot be written: %w", err)
		}
	}
	return j.append(entries)
}

// cursors returns what is to be written of the groups.
func (t *topic) cursors() *cursors {
	c := &cursors{Org: t.org.name, Topic: t.name, Committed: t.committed, Groups: make(map[string]uint64), Unclaimed: t.committed}
	for name, g := range t.groups {
		c.Groups[name] = g.floor(t.committed)
	}
	if t.unclaimed != nil {
		c.Unclaimed = t.unclaimed.floor(t.committed)
	}
	return c
}

// touch has the cursors written soon.
func (t *topic) touch() {
	if t.journal != nil && !t.dirty && !t.closed {
		t.dirty = true
		time.AfterFunc(t.broker.limits.cursors, t.flush)
	}
}

// flush writes the cursors.
func (t *topic) flush() {
	t.journal.mu.Lock()
	defer t.journal.mu.Unlock()
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	c := t.cursors()
	t.dirty = false
	t.mu.Unlock()
	if err := t.journal.writeCursors(c); err != nil {
		t.broker.log.Error("cursors not written, trying again: a crash would have messages delivered again",
			"organisation", t.org.name, "topic", t.name, "err", err)
		t.mu.Lock()
		t.touch()
		t.mu.Unlock()
	}
}

// close ends the topic: what waits fails, what is being written is written.
func (t *topic) close() error {
	t.mu.Lock()
	t.closed = true
	queue := t.queue
	t.queue = nil
	for t.writing {
		t.written.Wait()
	}
	c := t.cursors()
	t.mu.Unlock()
	for _, p := range queue {
		p.timer.Stop()
		t.release(p.entry)
		p.end(stream.ErrClosed)
	}
	if t.journal == nil {
		return nil
	}
	t.journal.mu.Lock()
	defer t.journal.mu.Unlock()
	if !t.journal.made && len(c.Groups) == 0 {
		return nil
	}
	defer t.journal.close()
	return t.journal.writeCursors(c)
}
