package certs

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxFile bounds a file of certificates, in bytes. All authorities that systems
// trust fit into it.
const MaxFile = 1 << 20

// ReadFile reads a file of certificates or of a key. Definitions name such files: a
// pipe, a device or a large file is an error, and neither blocks nor fills the memory.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxFile {
		return nil, fmt.Errorf("%s: is longer than %d bytes; is it a certificate?", path, MaxFile)
	}
	return text, nil
}
