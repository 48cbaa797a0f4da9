package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"
)

// Pin has the process and its children run on these cores alone, all of their
// threads and those that they will start.
func (p *Process) Pin(cores ...int) error {
	for _, pid := range family(p.Pid()) {
		if err := pin(pid, cores); err != nil {
			return fmt.Errorf("having %s run on cores %v alone: %w", p.Name, cores, err)
		}
	}
	return nil
}

// PinSelf has this process run on these cores alone, and the children that it
// starts from now on.
func PinSelf(cores ...int) error {
	if err := pin(os.Getpid(), cores); err != nil {
		return fmt.Errorf("running on cores %v alone: %w", cores, err)
	}
	return nil
}

// pin pins the threads of a process until it finds no new ones: one that was
// started meanwhile by one that was not pinned yet may run anywhere.
func pin(pid int, cores []int) error {
	done := make(map[string]bool)
	for found := true; found; {
		found = false
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			if done[thread] {
				continue
			}
			done[thread], found = true, true
			id, err := strconv.Atoi(filepath.Base(thread))
			if err != nil {
				return err
			}
			if err := setAffinity(id, cores); err != nil && !errors.Is(err, syscall.ESRCH) { // ended just now
				return err
			}
		}
	}
	return nil
}

func setAffinity(thread int, cores []int) error {
	var mask [16]uint64 // 1,024 cores
	for _, core := range cores {
		if core < 0 || core >= len(mask)*64 {
			return fmt.Errorf("core %d: want 0 to %d", core, len(mask)*64-1)
		}
		mask[core/64] |= 1 << (core % 64)
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(thread), unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return errno
	}
	return nil
}
