package source

import (
	"os"
	"time"
)

// A stamp identifies the content of a file by its metadata. The zero value matches no
// file.
type stamp struct {
	identity // of the file itself: its name may refer to another file now
	size     int64
	changed  int64 // unix nanoseconds
}

// An identity identifies a file on this machine; the zero value identifies none.
type identity struct{ device, inode uint64 }

// settled is how long ago a file must have changed before its time is trusted: a second
// change within one tick of the file system's clock has the same time.
const settled = 2 * time.Second

func stampOf(info os.FileInfo) stamp {
	return stamp{identityOf(info), info.Size(), info.ModTime().UnixNano()}
}

// settledStamp returns the stamp of a file that is about to be read, or the zero value if
// it may still change without another time.
func settledStamp(info os.FileInfo, now time.Time) stamp {
	if now.Sub(info.ModTime()) <= settled {
		return stamp{}
	}
	return stampOf(info)
}

// still reports whether a file is unchanged.
func (s stamp) still(info os.FileInfo) bool { return s.identity != identity{} && s == stampOf(info) }
