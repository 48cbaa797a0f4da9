package rig

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU returns how long the process and its children were on a processor, user and system
// together. It is exact to the last context switch, unlike the ticks of /proc/PID/stat.
func (p *Process) CPU() (time.Duration, error) {
	total := time.Duration(0)
	for _, pid := range family(p.Pid()) {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil || len(files) == 0 {
			return 0, fmt.Errorf("reading the CPU time of %s: no /proc/%d/task/*/schedstat", p.Name, pid)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				continue // the thread ended just now
			}
			first, _, _ := strings.Cut(string(data), " ")
			ns, err := strconv.ParseInt(first, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the CPU time of %s: %w", p.Name, err)
			}
			total += time.Duration(ns)
		}
	}
	return total, nil
}

// PSS returns the memory of the process and its children in bytes, what they
// share counted once.
func (p *Process) PSS() (int64, error) {
	total := int64(0)
	for _, pid := range family(p.Pid()) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) == 3 && fields[0] == "Pss:" {
				kib, err := strconv.ParseInt(fields[1], 10, 64)
				if err != nil {
					return 0, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
				}
				total += kib << 10
			}
		}
	}
	return total, nil
}

// family returns a process and all its descendants.
func family(pid int) []int {
	parents := make(map[int]int)
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is sound
	for _, file := range files {
		data, _ := os.ReadFile(file) // gone: not of the family
		// PID (name) state parent ...; the name may hold anything.
		_, rest, _ := strings.Cut(string(data[max(0, bytes.LastIndexByte(data, ')')):]), " ")
		fields := strings.Fields(rest)
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			parents[child] = parent
		}
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		for child, parent := range parents {
			if parent == all[i] {
				all = append(all, child)
			}
		}
	}
	return all
}
