// Package rig starts, pins, stops and measures the processes of a load test on Linux.
package rig

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// A Rig owns the processes and the folder of one load test. It is used by one
// goroutine.
type Rig struct {
	dir      string
	children []*Process
}

// New returns a rig with an empty folder of its own. The caller must Close it.
func New() (*Rig, error) {
	dir, err := os.MkdirTemp("", "sluice-loadtest-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the load test: %w", err)
	}
	return &Rig{dir: dir}, nil
}

// Dir makes a folder below the rig's.
func (r *Rig) Dir(name string) (string, error) {
	dir := filepath.Join(r.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making a folder for %s: %w", name, err)
	}
	return dir, nil
}

// Close ends all processes and removes the folder.
func (r *Rig) Close() {
	for _, p := range r.children {
		p.Stop()
	}
	if err := os.RemoveAll(r.dir); err != nil {
		fmt.Fprintf(os.Stderr, "removing %s: %v\n", r.dir, err)
	}
}

// Command says what to run.
type Command struct {
	Name  string // for messages and for its log
	Path  string
	Args  []string
	Env   []string // in addition to the rig's
	Dir   string   // "": the rig's own
	Ready string   // host:port that it listens on once it is ready
}

// A Process is a running child.
type Process struct {
	Name string

	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

// readyWithin bounds a start. A gateway with very many APIs takes its time.
const readyWithin = 3 * time.Minute

// Start runs a command and returns once it listens.
func (r *Rig) Start(ctx context.Context, c Command) (*Process, error) {
	p := &Process{Name: c.Name, cmd: exec.Command(c.Path, c.Args...), done: make(chan struct{})}
	p.log = filepath.Join(r.dir, fmt.Sprintf("%d-%s.log", len(r.children), c.Name))
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", c.Name, err)
	}
	defer out.Close()
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env, p.cmd.Dir = append(os.Environ(), c.Env...), c.Dir
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	r.children = append(r.children, p)
	go p.wait()
	err = p.listens(ctx, c.Ready)
	if err != nil && ctx.Err() == nil { // others go on, and must not share the machine with it
		p.Stop()
	}
	return p, err
}

func (p *Process) wait() {
	_ = p.cmd.Wait() // it was stopped, or its clients see the failure
	close(p.done)
}

// listens returns once addr accepts connections.
func (p *Process) listens(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen on %s: %w\n%s", p.Name, addr, ctx.Err(), p.Log())
		case <-p.done:
			return fmt.Errorf("%s ended at once\n%s", p.Name, p.Log())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Pid is the process that was started; it may have children of its own.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log returns the end of what the process wrote.
func (p *Process) Log() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-2000):])
}

// Logged returns how many lines of what the process wrote begin with a text.
func (p *Process) Logged(text string) int {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return 0
	}
	return bytes.Count(append([]byte("\n"), data...), []byte("\n"+text))
}

// Stop ends the process, kindly at first, and then what is left of its group.
func (p *Process) Stop() {
	defer func() { _ = syscall.Kill(-p.Pid(), syscall.SIGKILL) }() // mostly none is left
	_ = p.cmd.Process.Signal(syscall.SIGTERM)                      // it may have ended by itself
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// FreeAddress returns an unused loopback address.
func FreeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	addr := ln.Addr().String()
	return addr, ln.Close()
}

// Port returns the port of an address that FreeAddress returned.
func Port(addr string) int {
	_, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	return n
}

// ownGroup puts a child in a process group of its own, so that it can be ended
// with all of its children, and has the kernel end it when its parent was
// killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
