package rig

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestCostsOfChildrenCount(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Fatal(err)
	}
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// Listens on nothing: Start gives up with ctx, but the process is there.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = r.Start(ctx, Command{Name: "busy", Path: "bash", Args: []string{"-c", "(while :; do :; done) & wait"}, Ready: "127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "does not listen") {
		t.Fatalf("error %v", err)
	}
	p := r.children[0]
	if n := len(family(p.Pid())); n != 2 {
		t.Errorf("a family of %d, want 2", n)
	}
	if cpu, err := p.CPU(); err != nil || cpu < 20*time.Millisecond {
		t.Errorf("CPU %v, %v", cpu, err)
	}
	if pss, err := p.PSS(); err != nil || pss < 100<<10 {
		t.Errorf("PSS %d, %v", pss, err)
	}
}

func TestEndOfAProcessIsTold(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = r.Start(t.Context(), Command{Name: "broken", Path: "bash", Args: []string{"-c", "echo no such luck; exit 1"}, Ready: "127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("error %v, want the end of the log", err)
	}
}
