package testenv

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestSweepRemovesOnlyWhatNobodyHolds(t *testing.T) {
	root := t.TempDir()
	hourAgo := time.Now().Add(-time.Hour)
	cases := []struct {
		name   string
		made   time.Time
		locked bool
		stays  bool
	}{
		{name: "dead", made: hourAgo},
		{name: "young", made: time.Now(), stays: true},
		{name: "held", made: hourAgo, locked: true, stays: true},
	}
	for _, c := range cases {
		dir := filepath.Join(root, c.name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if c.locked {
			lock, err := os.Create(filepath.Join(dir, "sluice.lock"))
			if err == nil {
				err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
		}
		if err := os.Chtimes(dir, c.made, c.made); err != nil {
			t.Fatal(err)
		}
	}
	sweep(filepath.Join(root, "*"))
	for _, c := range cases {
		_, err := os.Stat(filepath.Join(root, c.name))
		if stays := err == nil; stays != c.stays {
			t.Errorf("%s: stays %v, want %v", c.name, stays, c.stays)
		}
	}
}
