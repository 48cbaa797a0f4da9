package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
	"github.com/sluicegate/sluice/loadtest/load"
	"github.com/sluicegate/sluice/loadtest/rig"
)

// A contender is a proxy that takes part.
type contender struct {
	name  string
	start func(ctx context.Context, b *bench) (*running, error)
}

// running is a contender that has been started.
type running struct {
	name     string
	process  *rig.Process
	store    *rig.Process // nil without a shared store
	addr     string
	shared   string                                                // address of the shared store, "" without one
	keys     []string                                              // that it knows
	ask      func(*running)                                        // gives a twin requests like this one's own; nil: they are what it has
	unshed   func(ctx context.Context, b *bench) (*running, error) // starts one that sheds nothing; nil: this one sheds nothing
	request  func(dst []byte, n uint64) []byte                     // nil: a plain GET
	anew     bool                                                  // it closes idle connections while others take turns
	body     []byte                                                // of its responses; nil: that of the upstream
	profiles string                                                // address of the gateway's profiles, "": it has none
	dir      string                                                // of a gateway's files
	took     time.Duration                                         // from the start of a gateway until it served
}

// errAbsent says that a contender's program is not installed.
var errAbsent = errors.New("not installed")

// contenders are all that take part, the first being what the others are
// compared with. Other builds of Sluice take part in every setup, to be compared
// with this one.
func (b *bench) contenders() []contender {
	all := []contender{
		{"bare fasthttp", goProxy("bare")},
		{"bare fasthttp, again", goProxy("bare")},
		{"nginx", startNginx(0)},
		{"nginx with Lua, key + rate + quota", startNginx(someKeys)},
		{"HAProxy", startHAProxy(0)},
		{"HAProxy, key + rate + quota", startHAProxy(someKeys)},
	}
	for _, s := range []struct {
		name string
		as   setup
	}{
		{"Sluice, keyless", setup{}},
		{"Sluice, token + policy + rate + quota", setup{keys: someKeys}},
		{"Sluice, the same, one hot key", setup{keys: 1}},
		{"Sluice, the same with a shared store", setup{keys: someKeys, shared: true}},
		{"Sluice, shared store, one hot key", setup{keys: 1, shared: true}},
	} {
		all = append(all, contender{s.name, startSluice(s.as)})
		for _, build := range b.others {
			s.as.build = build
			all = append(all, contender{nameOf(s.name, build), startSluice(s.as)})
		}
	}
	return all
}

// nameOf is the name of a contender that is another build, "" being this one.
func nameOf(name, build string) string {
	if build == "" {
		return name
	}
	return name + ", " + filepath.Base(build)
}

// chosen is what -only leaves, with the yardstick.
func (b *bench) chosen(all []contender) []contender {
	some := all[:1:1]
	for _, c := range all[1:] {
		if strings.Contains(strings.ToLower(c.name), strings.ToLower(b.only)) {
			some = append(some, c)
		}
	}
	return some
}

// startAll starts contenders. Those that are not installed or do not start are
// left out: the others can be compared all the same. The first is what they are
// compared with.
func (b *bench) startAll(ctx context.Context, all []contender) ([]*running, error) {
	var started []*running
	for i, c := range all {
		b.progress("starting %s", c.name)
		r, err := c.start(ctx, b)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil && i == 0 {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		if err != nil {
			b.leaveOut(c.name, err)
			continue
		}
		r.name = c.name
		started = append(started, r)
	}
	return started, nil
}

// stop ends what was started for a contender.
func (r *running) stop() {
	r.process.Stop()
	if r.store != nil {
		r.store.Stop()
	}
}

// path is the path of every request. Sluice's API listens on /bench/.
func (b *bench) path() string { return "/bench/" + b.body }

// plan returns the client's plan for a contender.
func (b *bench) plan(r *running, conns int) load.Plan {
	body, _ := answer.Body([]byte(b.path()))
	p := load.Plan{Addr: r.addr, Conns: conns, Request: r.request, Anew: r.anew, Want: answer.Want{Status: 200, Body: body}}
	if r.body != nil {
		p.Want.Body = r.body
	}
	if p.Request == nil {
		plain := []byte(b.head(r.addr) + "\r\n")
		p.Request = func(dst []byte, _ uint64) []byte { return append(dst, plain...) }
	}
	return p
}

// head is a request's head without its last line.
func (b *bench) head(addr string) string { return b.headFor(addr, b.path()) }

func (b *bench) headFor(addr, path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: " + addr +
		"\r\nUser-Agent: loadtest/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n"
}

// goEnv is the environment of the Go programs.
func (b *bench) goEnv() []string { return []string{fmt.Sprintf("GOMAXPROCS=%d", b.procs)} }

// installed finds a program, also where only root's PATH has it.
func installed(name string) (string, error) {
	for _, candidate := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, errAbsent)
}
