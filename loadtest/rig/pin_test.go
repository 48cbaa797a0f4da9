//go:build linux

package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"
)

var allowed = regexp.MustCompile(`(?m)^Cpus_allowed_list:\t(.*)$`)

// coresOf returns the cores that each thread of a process may run on.
func coresOf(t *testing.T, pid int) (lists []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("no threads of process %d: %v", pid, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // ended just now
		}
		lists = append(lists, string(allowed.FindSubmatch(data)[1]))
	}
	return lists
}

func TestPinnedProcessesRunOnTheirCores(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err = r.Start(ctx, Command{Name: "parent", Path: "bash", Args: []string{"-c", "sleep 60 & wait"}, Ready: "127.0.0.1:1"}); err == nil {
		t.Fatal("it listens")
	}
	p := r.children[0]
	if err := p.Pin(0); err != nil {
		t.Fatal(err)
	}
	for _, pid := range family(p.Pid()) {
		for _, got := range coresOf(t, pid) {
			if got != "0" {
				t.Errorf("process %d may run on %s, want 0", pid, got)
			}
		}
	}
	if err := p.Pin(1 << 20); err == nil {
		t.Error("a core that cannot be was taken")
	}
}

func TestThisProcessIsPinnedAndFreed(t *testing.T) {
	before := coresOf(t, os.Getpid())[0]
	all := make([]int, runtime.NumCPU())
	for i := range all {
		all[i] = i
	}
	if err := PinSelf(0); err != nil {
		t.Fatal(err)
	}
	during := coresOf(t, os.Getpid())
	if err := PinSelf(all...); err != nil {
		t.Fatal(err)
	}
	for _, got := range during {
		if got != "0" {
			t.Errorf("pinned, it may run on %s, want 0", got)
		}
	}
	for _, got := range coresOf(t, os.Getpid()) {
		if got != before {
			t.Errorf("freed, it may run on %s, want %s", got, before)
		}
	}
}
