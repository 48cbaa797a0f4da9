package rig

import (
	"strings"
	"testing"
)

// A Result is the exit code and output of a command.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Command runs the program to its end.
func Command(t testing.TB, with Settings, args ...string) Result {
	t.Helper()
	p := NewProcess(t, with, args...)
	p.Start()
	code := p.Wait()
	return Result{code, p.Run.Stdout.String(), p.Run.Stderr.String()}
}

// CLI runs a command on the machine of the server, with its data directory.
func (s *Server) CLI(args ...string) Result {
	s.T.Helper()
	return Command(s.T, Settings{"data_dir": s.Settings["data_dir"], "admin.listen": strings.TrimPrefix(s.Admin, "http://")}, args...)
}

// Wants fails the test unless the command ended with a code and printed some texts.
func (r Result) Wants(t *testing.T, code int, texts ...string) Result {
	t.Helper()
	if r.Code != code {
		t.Errorf("ended with code %d, want %d:\n%s%s", r.Code, code, r.Stdout, r.Stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.Stdout+r.Stderr, text) {
			t.Errorf("lacks %q:\n%s%s", text, r.Stdout, r.Stderr)
		}
	}
	return r
}

// LastWord returns the last word of the standard output, such as an ID.
func (r Result) LastWord() string {
	fields := strings.Fields(r.Stdout)
	if len(fields) == 0 {
		return ""
	}
	return fields[len(fields)-1]
}
