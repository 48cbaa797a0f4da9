package counter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/disk"
	"github.com/sluicegate/sluice/internal/pace"
)

const (
	fullName    = "counters"
	journalGlob = "journal-????????????????????" // twenty digits, which leaves out damaged ones
	damagedEnd  = ".damaged"

	saveEvery    = time.Second
	savedRate    = time.Minute // rates of shorter periods are not saved
	journalLeast = 1 << 20     // bytes below which a journal is not replaced by a full file
	frameAim     = 1 << 20     // bytes after which a frame is written

	// saveCPU is the share of a CPU that saving may take. Without a limit, requests
	// were delayed by up to 100 ms while a million counters were written.
	saveCPU = 0.3
)

// SaverOptions configure a Saver.
type SaverOptions struct {
	Dir   string        // created if missing; used by one process at a time
	Every time.Duration // 0 means one second
	Log   *slog.Logger  // nil: nothing is logged
}

// A Saver saves a Memory's counters to a directory: a full file, and a journal of
// the changes since. A process that stops cleanly loses nothing. A crash loses what
// was counted since the last save began: about one second, or two with a million
// changed counters. Rates of less than a minute are not saved.
type Saver struct {
	memory *Memory
	dir    string
	every  time.Duration
	log    *slog.Logger
	lock   *os.File
	saves  chan chan error // requests to save now
	pace   *pace.Pacer     // nil before Run, when no request is served yet

	generation  uint64
	journal     *os.File
	journalSize int64
	fullSize    int64
	unsaved     bool // a save failed: the next one has to be full

	records, frame []byte // buffers, reused by each save
}

// OpenSaver loads the counters in the directory into m, which must be new, and
// prepares the directory for saving. Expired counters are dropped, and none lasts
// longer than one period from now. A damaged file is logged, used as far as its
// checksums match, and renamed. The caller must call Run.
func OpenSaver(m *Memory, o SaverOptions) (*Saver, error) {
	if o.Every <= 0 {
		o.Every = saveEvery
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Saver{memory: m, dir: o.Dir, every: o.Every, log: o.Log, saves: make(chan chan error)}
	if err := s.open(); err != nil {
		if s.lock != nil {
			_ = s.lock.Close() // the first error is returned
		}
		return nil, fmt.Errorf("counters in %s: %w", o.Dir, err)
	}
	return s, nil
}

func (s *Saver) open() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	var err error
	if s.lock, err = os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock: another process uses it: %w", err)
	}
	if err := s.load(); err != nil {
		return err
	}
	for i := range s.memory.shard {
		s.memory.shard[i].save()
	}
	return s.saveFull(context.Background()) // also finds out now whether the directory can be written
}

// Run saves what changed every second until ctx ends, and then everything. End ctx
// when no more calls are counted. The error is that of the last save; earlier ones
// are logged, and the next save makes up for them.
func (s *Saver) Run(ctx context.Context) error {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	s.pace = pace.New(saveCPU)
	for {
		select {
		case <-tick.C:
			_ = s.saveAndLog(ctx) // tried again
		case done := <-s.saves:
			done <- s.saveAndLog(ctx)
		case <-ctx.Done():
			err := s.saveFull(ctx)
			err = errors.Join(err, s.journal.Close(), s.lock.Close())
			if err != nil {
				return fmt.Errorf("save counters in %s: %w", s.dir, err)
			}
			return nil
		}
	}
}

// saveAndLog logs when saving begins to fail and when it works again.
func (s *Saver) saveAndLog(ctx context.Context) error {
	failed := s.unsaved
	err := s.save(ctx)
	s.unsaved = err != nil
	if s.unsaved { // the full save that follows needs no list of changes, which would grow until then
		for i := range s.memory.shard {
			s.memory.shard[i].discardChanged()
		}
	}
	switch {
	case err != nil && !failed:
		s.log.Error("counters not saved, trying again every second", "dir", s.dir, "err", err)
	case err == nil && failed:
		s.log.Info("counters saved again", "dir", s.dir)
	}
	return err
}

// Reset is Memory.Reset that has been saved when it returns, so that a crash does
// not undo it. It works only while Run does.
func (s *Saver) Reset(ctx context.Context, keys ...string) error {
	done := make(chan error, 1)
	if err := s.memory.Reset(ctx, keys...); err != nil {
		return err
	}
	select {
	case s.saves <- done:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Saver) save(ctx context.Context) error {
	if s.unsaved || s.journalSize > max(2*s.fullSize, journalLeast) {
		return s.saveFull(ctx)
	}
	n, err := s.writeShards(ctx, s.journal, (*shard).takeChanged)
	s.journalSize += n
	if err != nil || n == 0 {
		return err
	}
	return s.journal.Sync()
}

// rest leaves the CPU to requests for a while if there was much to do. Once ctx has
// ended it does nothing.
func (s *Saver) rest(ctx context.Context) { _ = s.pace.Step(ctx) }

// writeShards writes what take appends of each shard, in frames, and returns its
// size in bytes.
func (s *Saver) writeShards(ctx context.Context, w io.Writer, take func(sh *shard, records []byte) []byte) (size int64, err error) {
	s.pace.Begin()
	s.records = s.records[:0]
	for i := range s.memory.shard {
		s.rest(ctx)
		s.records = take(&s.memory.shard[i], s.records)
		if len(s.records) < frameAim && (i < shards-1 || len(s.records) == 0) {
			continue
		}
		s.frame = appendFrame(s.frame[:0], s.records)
		n, err := w.Write(s.frame)
		size += int64(n)
		if err != nil {
			return size, err
		}
		s.records = s.records[:0]
	}
	return size, nil
}

// saveFull replaces the full file by one with all counters, and begins a new
// journal. A crash at any point leaves the old file or the new one.
func (s *Saver) saveFull(ctx context.Context) error {
	path := filepath.Join(s.dir, fullName)
	size, err := s.writeFull(ctx, path+".tmp")
	if err != nil {
		return err
	}
	if err := disk.Replace(path+".tmp", path); err != nil {
		return err
	}
	s.generation++
	s.fullSize = size
	return s.beginJournal()
}

func (s *Saver) writeFull(ctx context.Context, path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head, err := f.Write(appendHead(nil, s.generation+1))
	if err != nil {
		return 0, err
	}
	now := s.memory.clock().UnixMicro()
	size, err = s.writeShards(ctx, f, func(sh *shard, records []byte) []byte { return sh.takeAll(records, now) })
	if err != nil {
		return 0, err
	}
	end, err := f.Write(appendFrame(nil, nil))
	if err != nil {
		return 0, err
	}
	return size + int64(head+end), f.Sync()
}

// beginJournal replaces the journal by an empty one of this generation, and removes
// those of other generations.
func (s *Saver) beginJournal() error {
	if s.journal != nil {
		_ = s.journal.Close() // the full file has its content
	}
	name := journalName(s.generation)
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	s.journal = f
	n, err := f.Write(appendHead(nil, s.generation))
	s.journalSize = int64(n)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	for _, old := range s.journals() {
		if filepath.Base(old) != name {
			_ = os.Remove(old) // one that remains is ignored: its generation is not the full file's
		}
	}
	return disk.SyncDir(s.dir)
}

func journalName(generation uint64) string { return fmt.Sprintf("journal-%020d", generation) }

// journals lists all journals, oldest first.
func (s *Saver) journals() []string {
	found, _ := filepath.Glob(filepath.Join(s.dir, journalGlob)) // fails for a bad pattern only
	return found
}

// load reads the full file and the journals that follow it.
func (s *Saver) load() error {
	full := filepath.Join(s.dir, fullName)
	generation, err := s.loadFile(full, true)
	if err != nil {
		return err
	}
	s.generation = generation
	for _, path := range s.journals() {
		if filepath.Base(path) < journalName(generation) {
			continue
		}
		newest, err := s.loadFile(path, false)
		if err != nil {
			return err
		}
		s.generation = max(s.generation, newest)
	}
	return nil
}

// loadFile restores the counters of a file as far as it is whole. A damaged file is
// logged and renamed; only a file that cannot be read at all is an error.
func (s *Saver) loadFile(path string, full bool) (uint64, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	generation, cells, damage := s.read(f, full)
	if damage == nil {
		return generation, nil
	}
	s.log.Error("saved counters are damaged; the file was read up to the damage and renamed",
		"file", path, "counters", cells, "err", damage)
	return generation, os.Rename(path, path+damagedEnd)
}

// read restores what it can, and returns why it stopped early if it did.
func (s *Saver) read(r io.Reader, full bool) (generation uint64, cells int, damage error) {
	if generation, damage = readHead(r); damage != nil {
		return 0, 0, damage
	}
	now := s.memory.clock().UnixMicro()
	var frame []byte
	for {
		frame, damage = readFrame(r, frame)
		switch {
		case damage == io.EOF && full:
			return generation, cells, errTorn // the last frame is missing
		case damage == io.EOF, damage == nil && len(frame) == 0:
			return generation, cells, nil
		case damage != nil:
			return generation, cells, damage
		}
		for rest := frame; len(rest) > 0; cells++ {
			var key string
			var c *cell
			if key, c, rest, damage = readRecord(rest); damage != nil {
				return generation, cells, damage
			}
			s.memory.restore(key, c, now)
		}
	}
}

// save makes the shard note changes from now on.
func (s *shard) save() {
	s.mu.Lock()
	s.saves = true
	s.mu.Unlock()
}

// isSaved reports whether the cell of a key is saved: its key fits a record, and a
// rate lasts long enough.
func (c *cell) isSaved(key string) bool {
	return len(key) <= keyMost && (c.kind == Quota || c.period >= micros(savedRate))
}

// takeChanged appends the cells that changed since the last save.
func (s *shard) takeChanged(b []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.changed {
		c := s.cells[key]
		if c != nil {
			c.dirty = false
			if !c.isSaved(key) {
				continue
			}
		}
		if len(key) <= keyMost {
			b = appendRecord(b, key, c)
		}
	}
	s.clearChanged()
	return b
}

// clearChanged empties the list of changes. The caller holds s.mu.
func (s *shard) clearChanged() {
	clear(s.changed)
	s.changed = s.changed[:0]
}

// discardChanged forgets what changed since the last save.
func (s *shard) discardChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.changed {
		if c := s.cells[key]; c != nil {
			c.dirty = false
		}
	}
	s.clearChanged()
}

// takeAll appends all cells that still count.
func (s *shard) takeAll(b []byte, now int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range s.cells {
		c.dirty = false
		if c.isSaved(key) && !c.expired(now) {
			b = appendRecord(b, key, c)
		}
	}
	s.clearChanged()
	return b
}

// restore adds a saved cell, unless it has expired or was removed. One that would
// last longer than its period from now, because the clock was set back meanwhile,
// ends then.
func (m *Memory) restore(key string, c *cell, now int64) {
	s := m.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.cells[key]; old != nil {
		s.remove(key, old)
	}
	if c.kind == kindRemoved || c.expired(now) {
		return
	}
	switch {
	case c.kind == Rate:
		c.age(now, c.period)
	case c.period > 0:
		c.edge = min(c.edge, now+c.period)
	}
	c.memory, c.shard = m, s.number
	s.cells[key] = c
	s.sweepAt = max(s.sweepAt, 2*len(s.cells))
}
