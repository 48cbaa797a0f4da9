package source

import (
	"os"
	"time"
)

// A stamp is what a file looked like, in a few numbers. The zero value is not known
// well enough to tell whether the file changed.
type stamp struct {
	identity // of the file, and not of its name: another one may have been put in its place
	size     int64
	changed  int64 // unix nanoseconds
}

// An identity tells a file from all others there are; the zero value does not.
type identity struct{ device, inode uint64 }

// settled is how long ago a file must have been changed to be known by its time:
// a second change within one tick of the file system's clock has the same.
const settled = 2 * time.Second

func stampOf(info os.FileInfo) stamp {
	return stamp{identityOf(info), info.Size(), info.ModTime().UnixNano()}
}

// settledStamp returns what a file looks like that is read from now on, the zero
// value when it may yet change unseen.
func settledStamp(info os.FileInfo, now time.Time) stamp {
	if now.Sub(info.ModTime()) <= settled {
		return stamp{}
	}
	return stampOf(info)
}

// still tells whether a file is what it was.
func (s stamp) still(info os.FileInfo) bool { return s.identity != identity{} && s == stampOf(info) }
