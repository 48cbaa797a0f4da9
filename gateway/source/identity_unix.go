//go:build unix

package source

import (
	"os"
	"syscall"
)

func identityOf(info os.FileInfo) identity {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return identity{uint64(stat.Dev), uint64(stat.Ino)}
	}
	return identity{}
}
