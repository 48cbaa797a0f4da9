package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func write(t *testing.T, path string, size int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(f)
	for at := 0; at < size; at += 1 << 20 {
		if n, err := w.Write(bytes.Repeat([]byte{byte(at >> 20)}, min(1<<20, size-at))); err != nil || n == 0 {
			t.Fatal(n, err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsReplacedAndItsRoomGivenBackInParts(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "counters")
	write(t, path, 3*part+7)
	write(t, path+".tmp", 5)
	before := Leave(path)
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
	rests, last := 0, int64(3*part+7)
	before.Release(func() {
		info, err := before.file.Stat()
		if err != nil || info.Size() != last-part {
			t.Errorf("rest %d: %v, %v", rests, info, err)
		}
		last = info.Size()
		rests++
	})
	if got, err := os.ReadFile(path); rests != 3 || err != nil || len(got) != 5 {
		t.Errorf("%d rests, then %d bytes, %v", rests, len(got), err)
	}
}

func TestAFileThatStaysIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	write(t, path, 2*part)
	Leave(path).Stay()
	if info, err := os.Stat(path); err != nil || info.Size() != 2*part {
		t.Errorf("%v, %v", info, err)
	}
}

func TestACopyUnderAnotherNameStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	write(t, path, 2*part)
	if err := os.Link(path, path+".backup"); err != nil {
		t.Fatal(err)
	}
	if err := Remove(path, func() {}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path + ".backup"); err != nil || info.Size() != 2*part {
		t.Errorf("%v, %v", info, err)
	}
}

func TestAFileIsRemovedInParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	write(t, path, 2*part+1)
	rests := 0
	if err := Remove(path, func() { rests++ }); err != nil || rests != 2 {
		t.Errorf("%d rests, %v", rests, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if err := Remove(path, func() {}); !os.IsNotExist(err) {
		t.Errorf("removed again: %v", err)
	}
	Leave(path).Release(func() { t.Error("rests for no file") })
}

// files are what is flushed in practice: a file with new bytes, and a directory.
func files(t *testing.T) (all []*os.File) {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(file.Close(), folder.Close()) })
	return []*os.File{file, folder}
}

func TestFilesAreFlushedWithoutHoldingAProcessor(t *testing.T) {
	q := newQueue()
	if q == nil {
		t.Skip("this system flushes files in no other way than by fsync")
	}
	for round := range 3 {
		for _, f := range files(t) {
			_, _ = f.WriteString("new") // to a directory nothing is written
			if done, err := q.sync(f); !done || err != nil {
				t.Errorf("round %d, %s: done %v, %v", round, f.Name(), done, err)
			}
		}
	}
}

func TestSyncFailsAsFsyncDoes(t *testing.T) {
	closed := files(t)[0]
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(read.Close(), write.Close()) })
	var s Syncer
	for what, f := range map[string]*os.File{"closed": closed, "pipe": write} {
		got, want := s.Sync(f), f.Sync()
		if want == nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if err := s.SyncDir(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := s.Sync(files(t)[0]); err != nil {
		t.Errorf("after failures: %v", err)
	}
}

func TestAFailureThatTheSystemTellsLaterIsTold(t *testing.T) {
	f := files(t)[0]
	err := failure(f, -int64(syscall.EIO))
	if !errors.Is(err, syscall.EIO) || err.Error() != "sync "+f.Name()+": input/output error" {
		t.Errorf("%v", err)
	}
	if err := failure(f, 0); err != nil {
		t.Errorf("of no failure: %v", err)
	}
}

func TestManyFlushWithOneSyncer(t *testing.T) {
	var s Syncer
	var all sync.WaitGroup
	for range 8 {
		f := files(t)[0]
		all.Go(func() {
			for range 20 {
				if _, err := f.WriteString("x"); err != nil {
					t.Error(err)
				}
				if err := s.Sync(f); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// A queue is the system's memory: those that nobody uses any more are given back.
func TestQueuesAreGivenBack(t *testing.T) {
	if newQueue() == nil {
		t.Skip("this system has none")
	}
	before := queues(t)
	for range 8 {
		newQueue()
	}
	for range 20_000 { // to give one back takes the system some hundredths of a second
		runtime.GC() // which has cleanups run, in goroutines of their own
		if queues(t) <= before+1 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d queues, before %d", queues(t), before)
}

// queues counts the queues of this process, which are memory that it has mapped.
func queues(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(maps, []byte("/[aio]"))
}

func TestAFileIsFetchedBeforeItIsRead(t *testing.T) {
	f := files(t)[0]
	if _, err := f.Write(bytes.Repeat([]byte("x"), 5000)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	fd := int(f.Fd())
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if !isAbsent(fd) {
		t.Skip("files stay in memory here")
	}
	Fetch(f)
	if isAbsent(fd) {
		t.Error("it has to come from the disk after Fetch")
	}
	if got, err := os.ReadFile(f.Name()); err != nil || len(got) != 5000 {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

func TestAFetchedFileIsReadWithoutANote(t *testing.T) {
	made, long := files(t)[0], time.Now().Add(-48*time.Hour)
	if _, err := made.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(made.Name(), long, time.Now()); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(made.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	Fetch(f)
	if got, err := io.ReadAll(f); err != nil || string(got) != "text" {
		t.Errorf("read %q, %v", got, err)
	}
	var now unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &now); err != nil {
		t.Fatal(err)
	}
	if read := time.Unix(now.Atim.Unix()); !read.Equal(time.Unix(long.Unix(), int64(long.Nanosecond()))) {
		t.Errorf("it was read last at %s, want still %s", read, long)
	}
}

func TestWhatCannotBeFetchedIsLeftToTheRead(t *testing.T) {
	all := files(t)
	if err := all[0].Close(); err != nil {
		t.Fatal(err)
	}
	for _, f := range all { // a closed file, and a directory
		Fetch(f)
	}
	empty := files(t)[0]
	Fetch(empty)
	if got, err := os.ReadFile(empty.Name()); err != nil || len(got) != 0 {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}
