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

// Pin restricts the process and its children to these cores, with all their present and
// future threads.
func (p *Process) Pin(cores ...int) error {
	for _, pid := range family(p.Pid()) {
		if err := pin(pid, cores); err != nil {
			return fmt.Errorf("pinning %s to cores %v: %w", p.Name, cores, err)
		}
	}
	return nil
}

// PinSelf restricts this process to these cores, and the children that it starts from now
// on.
func PinSelf(cores ...int) error {
	if err := pin(os.Getpid(), cores); err != nil {
		return fmt.Errorf("pinning this process to cores %v: %w", cores, err)
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
