package main

import (
	"fmt"
	"runtime"

	"github.com/sluicegate/sluice/loadtest/rig"
)

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

// placement says who runs where.
func (b *bench) placement() string {
	if len(b.cores) == 0 {
		return "Processes run where the kernel puts them."
	}
	return fmt.Sprintf("Contenders run on cores %v, client and upstream on the others.", b.cores)
}
