package shell

import (
	"errors"
	"os/exec"
)

// Exit codes of the process. An error with a method ExitCode() int selects its code, the
// outermost of a chain first; others end with ExitFailed. *exec.ExitError does not count.
const (
	ExitOK          = 0
	ExitFailed      = 1 // anything without a code of its own
	ExitUsage       = 2 // wrong arguments or configuration
	ExitMissing     = 3 // a prerequisite is missing on the machine
	ExitRunning     = 4 // already running
	ExitDifferences = 5 // no error, but a strict check found something
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
	if _, child := coded.(*exec.ExitError); child { // the exit code of another program is unrelated
		return ExitFailed
	}
	return coded.ExitCode()
}

// A UsageError is an invalid command line.
type UsageError struct {
	Cause   error
	Command string // path of the command for the hint to its help
}

// Error returns the cause with a hint to the help.
func (e *UsageError) Error() string { return e.Cause.Error() + "\nsee " + e.Command + " --help" }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Cause }

// ExitCode is ExitUsage.
func (e *UsageError) ExitCode() int { return ExitUsage }

// An ExitError ends the process with a code.
type ExitError struct {
	Code    int
	Message string // empty if the command has printed the reason
}

// Exit returns an *ExitError. Nothing is printed for an empty message.
func Exit(code int, message string) error { return &ExitError{code, message} }

// Error returns the message.
func (e *ExitError) Error() string { return e.Message }

// ExitCode returns the code.
func (e *ExitError) ExitCode() int { return e.Code }

// AsExit gives an error of a server its exit code.
func AsExit(err error) error {
	if _, ok := errors.AsType[*UnreachableError](err); ok {
		return Exit(ExitUnreachable, err.Error())
	}
	if _, ok := errors.AsType[*RefusedError](err); ok {
		return Exit(ExitRefused, err.Error())
	}
	return err
}

// InFlag prefixes an error with the flag that caused it. It returns nil for nil.
func InFlag(name string, err error) error {
	if err == nil {
		return nil
	}
	return Exit(ExitUsage, name+": "+err.Error())
}
