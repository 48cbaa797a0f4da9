package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
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
