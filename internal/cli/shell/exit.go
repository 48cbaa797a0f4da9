package shell

import (
	"errors"
	"os/exec"

	"github.com/sluicegate/sluice/internal/cli/client"
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

// exitCoder is an error that knows its exit code.
type exitCoder interface {
	error
	ExitCode() int
}

// ExitCode returns the code that an error ends the process with.
func ExitCode(err error) int {
	coded, ok := errors.AsType[exitCoder](err)
	if !ok {
		return ExitFailed
	}
	if _, child := coded.(*exec.ExitError); child { // the code of another program says nothing here
		return ExitFailed
	}
	return coded.ExitCode()
}

// A UsageError is a command line that cannot be understood.
type UsageError struct {
	Cause   error
	Command string // path of the command, whose help is pointed at
}

// Error says what is wrong and where help is.
func (e *UsageError) Error() string { return e.Cause.Error() + "\nsee " + e.Command + " --help" }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Cause }

// ExitCode is ExitUsage.
func (e *UsageError) ExitCode() int { return ExitUsage }

// An ExitError ends the process with a code.
type ExitError struct {
	Code    int
	Message string // empty when the command has said why itself
}

// Exit returns an *ExitError. An empty message says that everything was said.
func Exit(code int, message string) error { return &ExitError{code, message} }

// Error returns the message.
func (e *ExitError) Error() string { return e.Message }

// ExitCode returns the code.
func (e *ExitError) ExitCode() int { return e.Code }

// AsExit gives an error of a server the exit code that it stands for.
func AsExit(err error) error {
	if _, ok := errors.AsType[*client.UnreachableError](err); ok {
		return Exit(ExitUnreachable, err.Error())
	}
	if _, ok := errors.AsType[*client.RefusedError](err); ok {
		return Exit(ExitRefused, err.Error())
	}
	return err
}

// InFlag says which flag an error is about. It returns nil for nil.
func InFlag(name string, err error) error {
	if err == nil {
		return nil
	}
	return Exit(ExitUsage, name+": "+err.Error())
}
