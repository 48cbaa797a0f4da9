package main

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// printMachine says what the numbers were taken with.
func (b *bench) printMachine() {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		kernel = []byte("unknown")
	}
	b.printf("%s, %s, Linux %s, %d cores (%s), %s answers, %d connections, GOMAXPROCS=%d\n",
		time.Now().UTC().Format("2006-01-02 15:04 MST"), runtime.Version(), strings.TrimSpace(string(kernel)),
		runtime.NumCPU(), processor(), b.body, b.conns, b.procs)
	for _, program := range []struct{ name, flag string }{{"nginx", "-v"}, {"haproxy", "-v"}, {storeProgram(), "--version"}} {
		out, err := exec.Command(program.name, program.flag).CombinedOutput()
		if err == nil {
			line, _, _ := strings.Cut(string(out), "\n")
			b.printf("%s\n", line)
		}
	}
	b.printf("\n")
}

func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.SplitSeq(string(info), "\n") {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(name, "\t :")
		}
	}
	return "unknown"
}

// storeProgram is the shared store's server, "" when there is none here.
func storeProgram() string {
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
