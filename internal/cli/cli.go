// Package cli is the command line: it reads arguments and configuration, calls
// what a command stands for, prints results, and turns errors into exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/config"
)

// Exit codes of the process. An error that is to end the process with another
// code than ExitFailed has a method ExitCode() int that returns it; the
// outermost such error of a chain counts. *exec.ExitError is not taken for one.
const (
	ExitOK          = 0
	ExitFailed      = 1 // anything that has no code of its own
	ExitUsage       = 2 // wrong arguments or configuration
	ExitMissing     = 3 // a prerequisite is missing on the machine
	ExitRunning     = 4 // already running
	ExitDifferences = 5 // nothing is wrong, but a strict check found something
	ExitRefused     = 6 // validation found problems
	ExitUnreachable = 7 // a server cannot be reached
)

// A Process is what a run of the program is given by its surroundings.
type Process struct {
	Args      []string // without the program's name
	Env       []string // NAME=value
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	SkipDrain <-chan struct{} // closed when a stop shall no longer wait for requests in flight
	Commands  Commands
}

// Commands does the work that commands stand for. The context ends when the
// process shall stop; a command that stops for that reason returns nil or the
// context's error.
type Commands struct {
	Up      func(context.Context, *config.Config, Options) error
	Gateway func(context.Context, *config.Config, Options) error
	Admin   func(context.Context, *config.Config, Options) error

	// MigrateStatus returns every migration there is, oldest first.
	MigrateStatus func(context.Context, *config.Config) ([]Migration, error)
	// MigrateUp applies what is missing and returns what it applied.
	MigrateUp func(context.Context, *config.Config) ([]Migration, error)
}

// Options is what a serving command is told beside its configuration.
type Options struct {
	Demo      bool            // up only: seed an empty database with sample objects
	Quiet     bool            // print no banner
	Stdout    io.Writer       // banner and access log
	Stderr    io.Writer       // log
	SkipDrain <-chan struct{} // closed when the stop shall no longer wait for requests in flight
}

// Migration is one step of the database's schema.
type Migration struct {
	Version int64
	Name    string
	Applied time.Time // zero: not yet
}

// Run executes one command line and returns the exit code. It ends when the
// command does; ctx asks a serving command to stop.
func Run(ctx context.Context, p Process) int {
	s := &session{process: p}
	root := s.rootCommand()
	root.SetArgs(append([]string{}, p.Args...)) // never nil: cobra would take os.Args
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return ExitOK
	}
	if !s.started { // cobra refused the arguments before the command ran
		err = &usageError{err: err, command: cmd.CommandPath()}
	}
	s.report(err)
	return exitCode(err)
}

// session is one run.
type session struct {
	process Process
	started bool // arguments are fine and the command runs

	configFiles []string
	output      string
	quiet       bool
	noColor     bool
}

// exitCoder is an error that knows its exit code.
type exitCoder interface {
	error
	ExitCode() int
}

func exitCode(err error) int {
	coded, ok := errors.AsType[exitCoder](err)
	if !ok {
		return ExitFailed
	}
	if _, child := coded.(*exec.ExitError); child { // the code of another program says nothing here
		return ExitFailed
	}
	return coded.ExitCode()
}

// report writes an error where people look for it.
func (s *session) report(err error) {
	text := err.Error()
	if text == "" { // all was said already
		return
	}
	_, _ = fmt.Fprintf(s.process.Stderr, "%s %s\n", s.color("sluice:"), strings.TrimRight(text, "\n"))
}

// usageError is a command line that cannot be understood.
type usageError struct {
	err     error
	command string
}

// Error says what is wrong and where help is.
func (e *usageError) Error() string { return e.err.Error() + "\nsee " + e.command + " --help" }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.err }

// ExitCode is ExitUsage.
func (e *usageError) ExitCode() int { return ExitUsage }

// exitError ends the process with a code after a command has said why itself.
type exitError struct {
	code    int
	message string // may be empty
}

// Error returns the message.
func (e *exitError) Error() string { return e.message }

// ExitCode returns the code.
func (e *exitError) ExitCode() int { return e.code }
