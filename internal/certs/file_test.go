package certs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFilesThatHoldNoCertificateAreNotReadToTheirEnd(t *testing.T) {
	dir := t.TempDir()
	pipe, large, whole := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"), filepath.Join(dir, "whole")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, make([]byte, MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(whole, make([]byte, MaxFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		pipe:                          "is not a regular file",
		"/dev/zero":                   "is not a regular file",
		dir:                           "is not a regular file",
		large:                         "is longer than 1048576 bytes",
		filepath.Join(dir, "missing"): "no such file",
	} {
		if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if text, err := ReadFile(whole); err != nil || len(text) != MaxFile {
		t.Errorf("the longest: %d bytes, %v", len(text), err)
	}
}
