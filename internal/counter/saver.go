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

	"github.com/sluicegate/sluice/internal/counter/frames"
	"github.com/sluicegate/sluice/internal/counter/rings"
	"github.com/sluicegate/sluice/internal/disk"
	"github.com/sluicegate/sluice/internal/pace"
)

const (
	fullName    = "counters"
	journalGlob = "journal-????????????????????" // twenty digits: not one set aside
	damagedEnd  = ".damaged"

	saveEvery    = time.Second
	savedRate    = time.Minute // rates of shorter periods are not worth saving
	journalLeast = 1 << 20     // a journal below it is never folded into the full file
	frameAim     = 1 << 20

	// saveCPU is the share of a processor that saving may take. Requests stood still
	// for a tenth of a second while a million counters were written without a rest.
	saveCPU = 0.3
)

// SaverOptions say where and how often a Saver saves.
type SaverOptions struct {
	Dir   string        // made when it is missing; of one process at a time
	Every time.Duration // 0 means one second
	Log   *slog.Logger  // nil: silent
}

// A Saver keeps a Memory's counters in a directory: a full file, and a journal
// of what changed since. A process that stops cleanly loses nothing; a crash
// forgets what was counted since the last save: about one second, and as long as
// saving takes, which with a million counters rests for most of another. Rates of
// less than a minute are not saved.
type Saver struct {
	memory *Memory
	dir    string
	every  time.Duration
	log    *slog.Logger
	lock   *os.File
	asked  chan chan error // saves that somebody waits for
	pace   *pace.Pacer     // nil before Run: nothing is served yet

	generation  uint64
	journal     *os.File
	journalSize int64
	fullSize    int64
	unsaved     bool // a save failed: only a full one makes up for it
	syncer      disk.Syncer

	records, frame []byte // used again by each save: as much as a frame takes, and what one shard has more
}

// OpenSaver loads what the directory holds into m, which must be new, and makes
// it ready to save to. Counters whose period is over are dropped, and none lasts
// longer than one period from now. A damaged file is reported, used as far as
// its checksums hold, and set aside. The caller must call Run.
func OpenSaver(m *Memory, o SaverOptions) (*Saver, error) {
	if o.Every <= 0 {
		o.Every = saveEvery
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Saver{memory: m, dir: o.Dir, every: o.Every, log: o.Log, asked: make(chan chan error)}
	if err := s.open(); err != nil {
		if s.lock != nil {
			_ = s.lock.Close() // gives the directory free; the first error tells more
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
		s.memory.shard[i].keep()
	}
	return s.saveFull(context.Background()) // also shows now, not in a second, whether it can be written
}

// Run saves what changed every second until ctx ends, then everything. End ctx
// when no more calls are counted. The error is that of the last save: those
// before are logged, and made up for by the next one.
func (s *Saver) Run(ctx context.Context) error {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	s.pace = pace.New(saveCPU)
	for {
		select {
		case <-tick.C:
			_ = s.saveAndReport(ctx) // reported, and tried again
		case done := <-s.asked:
			done <- s.saveAndReport(ctx)
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

// saveAndReport logs when saving begins to fail and when it works again.
func (s *Saver) saveAndReport(ctx context.Context) error {
	failed := s.unsaved
	err := s.save(ctx)
	s.unsaved = err != nil
	if s.unsaved { // the full save that makes up for it needs no list of changes, which would grow until then
		for i := range s.memory.shard {
			s.memory.shard[i].forgetChanged()
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

// Reset is Memory's, but saved when it returns: people reset, and no crash may
// undo what they were told is done. It works only while Run does.
func (s *Saver) Reset(ctx context.Context, keys ...string) error {
	done := make(chan error, 1)
	if err := s.memory.Reset(ctx, keys...); err != nil {
		return err
	}
	select {
	case s.asked <- done:
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
	return s.syncer.Sync(s.journal)
}

// rest leaves the processor to calls for a while, if there was much to do. With
// the end of ctx there is no rest any more.
func (s *Saver) rest(ctx context.Context) { _ = s.pace.Step(ctx) }

// writeShards writes what take appends of each shard, in frames, and returns how
// much that was. The memory for it is kept, since this is done each second.
func (s *Saver) writeShards(ctx context.Context, w io.Writer, take func(sh *shard, records []byte) []byte) (size int64, err error) {
	s.pace.Begin()
	s.records = s.records[:0]
	for i := range s.memory.shard {
		s.rest(ctx)
		s.records = take(&s.memory.shard[i], s.records)
		if len(s.records) < frameAim && (i < shards-1 || len(s.records) == 0) {
			continue
		}
		s.frame = frames.AppendFrame(s.frame[:0], s.records)
		n, err := w.Write(s.frame)
		size += int64(n)
		if err != nil {
			return size, err
		}
		s.records = s.records[:0]
	}
	return size, nil
}

// saveFull writes everything to a new file, puts it in the place of the old one,
// and begins a new journal. A crash at any point leaves one of the two whole.
func (s *Saver) saveFull(ctx context.Context) error {
	path := filepath.Join(s.dir, fullName)
	size, err := s.writeFull(ctx, path+".tmp")
	if err != nil {
		return err
	}
	before := disk.Leave(path)
	if err = os.Rename(path+".tmp", path); err == nil {
		err = s.syncer.SyncDir(s.dir)
	}
	if err != nil {
		before.Stay() // a crash may yet bring it back
		return err
	}
	s.generation++
	s.fullSize = size
	s.pace.Begin()
	before.Release(func() { s.rest(ctx) })
	return s.beginJournal(ctx)
}

func (s *Saver) writeFull(ctx context.Context, path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := disk.NewWriter(f)
	head, err := w.Write(frames.AppendHead(nil, s.generation+1))
	if err != nil {
		return 0, err
	}
	now := s.memory.clock().UnixMicro()
	size, err = s.writeShards(ctx, w, func(sh *shard, records []byte) []byte { return sh.takeAll(records, now) })
	if err != nil {
		return 0, err
	}
	end, err := w.Write(frames.AppendFrame(nil, nil))
	if err != nil {
		return 0, err
	}
	return size + int64(head+end), s.syncer.Sync(f)
}

// beginJournal replaces the journal by an empty one of this generation. Those of
// others are of no use beside the full file.
func (s *Saver) beginJournal(ctx context.Context) error {
	if s.journal != nil {
		_ = s.journal.Close() // its content is in the full file
	}
	name := journalName(s.generation)
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	s.journal = f
	n, err := f.Write(frames.AppendHead(nil, s.generation))
	s.journalSize = int64(n)
	if err != nil {
		return err
	}
	if err := s.syncer.Sync(f); err != nil {
		return err
	}
	for _, old := range s.journals() {
		if filepath.Base(old) != name {
			_ = disk.Remove(old, func() { s.rest(ctx) }) // one that stays is ignored: its generation is not the full file's
		}
	}
	return s.syncer.SyncDir(s.dir)
}

func journalName(generation uint64) string { return fmt.Sprintf("journal-%020d", generation) }

// journals lists all journals, oldest first.
func (s *Saver) journals() []string {
	found, _ := filepath.Glob(filepath.Join(s.dir, journalGlob)) // fails on a bad pattern only
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

// loadFile takes in a file's counters, as far as it is whole. Damage is reported
// and the file set aside; only a file that cannot be read at all is an error.
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
	s.log.Error("saved counters are damaged: used as far as they are whole, and set aside",
		"file", path, "counters", cells, "err", damage)
	return generation, os.Rename(path, path+damagedEnd)
}

// read takes in what it can, and returns why it stopped early if it did.
func (s *Saver) read(r io.Reader, full bool) (generation uint64, cells int, damage error) {
	if generation, damage = frames.ReadHead(r); damage != nil {
		return 0, 0, damage
	}
	now := s.memory.clock().UnixMicro()
	var frame []byte
	for {
		frame, damage = frames.ReadFrame(r, frame)
		switch {
		case damage == io.EOF && full:
			return generation, cells, frames.ErrTorn // its last frame is missing
		case damage == io.EOF, damage == nil && len(frame) == 0:
			return generation, cells, nil
		case damage != nil:
			return generation, cells, damage
		}
		for rest := frame; len(rest) > 0; cells++ {
			var key string
			var c *cell
			var groups rings.Rings
			if key, c, rest, damage = readRecord(rest, &groups); damage != nil {
				return generation, cells, damage
			}
			s.memory.restore(key, c, &groups, now)
		}
	}
}
