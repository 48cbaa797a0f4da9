// Package cli is the command line: it parses arguments and configuration, runs commands,
// prints results, and maps errors to exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
)

// A Process is the environment of one run of the program.
type Process struct {
	Args      []string // without the program's name
	Env       []string // NAME=value
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	SkipDrain <-chan struct{} // closed to stop without waiting for requests in flight
	Commands  Commands
}

// Commands implements the commands. The context ends when the process is to stop; a
// command then returns nil or the context's error.
type Commands struct {
	Up      func(context.Context, *config.Config, Options) error
	Gateway func(context.Context, *config.Config, Options) error
	Admin   func(context.Context, *config.Config, Options) error

	// MigrateStatus returns all migrations, oldest first.
	MigrateStatus func(context.Context, *config.Config) ([]Migration, error)
	// MigrateUp applies the missing migrations and returns them.
	MigrateUp func(context.Context, *config.Config) ([]Migration, error)

	RotateSecrets Rotate

	CreateBackup, Restore BackupOrRestore
}

// Options are the options of a serving command besides its configuration.
type Options struct {
	Demo      bool            // up only: seed an empty database with sample objects
	Quiet     bool            // print no banner
	Stdout    io.Writer       // banner and access log
	Stderr    io.Writer       // log
	SkipDrain <-chan struct{} // closed when the stop shall no longer wait for requests in flight
	Origins   config.Origins  // of the settings
}

// Migration is one step of the database's schema.
type Migration struct {
	Version int64
	Name    string
	Applied time.Time // zero: not yet
}

// Run executes one command line and returns the exit code. It returns when the command
// ends; the end of ctx stops a serving command.
func Run(ctx context.Context, p Process) int {
	s := &session{process: p, Shell: &shell.Shell{Env: p.Env, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr}}
	root := s.rootCommand()
	root.SetArgs(append([]string{}, p.Args...)) // never nil: cobra would take os.Args
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return shell.ExitOK
	}
	if !s.started { // cobra refused the arguments before the command ran
		err = &shell.UsageError{Cause: err, Command: cmd.CommandPath()}
	}
	s.report(err)
	return shell.ExitCode(err)
}

// session is one run.
type session struct {
	*shell.Shell
	process Process
	started bool // arguments are fine and the command runs
}

// report prints an error to standard error.
func (s *session) report(err error) {
	text := err.Error()
	if text == "" { // the command has printed the reason
		return
	}
	_, _ = fmt.Fprintf(s.Stderr, "%s %s\n", s.Color("sluice:"), strings.TrimRight(text, "\n"))
}
