package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/sluicegate/sluice/loadtest/rig"
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

// storeProgram returns the path of the shared store's server, "" if none is installed.
func storeProgram() string {
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// coresOf splits the machine's cores: contenders take as many as -procs from the
// end, the client the first, the upstream and the store the second if there is
// one to spare. There are none when the cores are too few to be split.
func coresOf(cores, procs int) (contenders []int, client, upstream int) {
	if procs >= cores {
		return nil, 0, 0
	}
	for core := cores - procs; core < cores; core++ {
		contenders = append(contenders, core)
	}
	return contenders, 0, min(1, cores-procs-1)
}

// pin puts the client and the upstream on their cores, and has contenders be put
// on theirs as long as release was not called.
func (b *bench) pin() (release func(), err error) {
	cores, client, upstream := coresOf(runtime.NumCPU(), b.procs)
	if len(cores) == 0 || !b.pinned {
		return func() {}, nil
	}
	everywhere := make([]int, runtime.NumCPU())
	for i := range everywhere {
		everywhere[i] = i
	}
	if err := b.upstream.Pin(upstream); err != nil {
		return nil, err
	}
	if err := rig.PinSelf(client); err != nil {
		return nil, err
	}
	b.cores = cores
	return func() {
		b.cores = nil
		if err := rig.PinSelf(everywhere...); err != nil {
			b.note("this process stays where it was pinned: %v", err)
		}
		if err := b.upstream.Pin(everywhere...); err != nil {
			b.note("the upstream stays where it was pinned: %v", err)
		}
	}, nil
}

// place puts a contender on its cores while there are some. Its store stays where
// the client is, as on a machine of its own.
func (b *bench) place(r *running) error {
	if len(b.cores) == 0 {
		return nil
	}
	return r.process.Pin(b.cores...)
}

// placement describes which processes run on which cores.
func (b *bench) placement() string {
	if len(b.cores) == 0 {
		return "Processes run where the kernel puts them."
	}
	return fmt.Sprintf("Contenders run on cores %v, client and upstream on the others.", b.cores)
}
