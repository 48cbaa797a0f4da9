package stream

import (
	"errors"
	"fmt"
	"time"
)

// A Class says what follows from an error.
type Class uint8

// The classes of errors. An error without a class is Transient.
const (
	Transient Class = iota // the message is tried again
	Unknown                // the peer may have it: it is tried again, which may make two of it
	Permanent              // this message will never be taken: it is dead-lettered
	Refused                // by a processor: it is tried again, and then dead-lettered
)

// A Failure is an error with a class.
type Failure struct {
	Class Class
	By    string        // label of the processor or output
	After time.Duration // the peer asked not to be tried again before; 0: it did not
	Err   error         // for people: without secrets and payload
}

// Error implements error.
func (f *Failure) Error() string {
	if f.By == "" {
		return f.Err.Error()
	}
	return f.By + ": " + f.Err.Error()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Failf returns a failure with a text.
func Failf(c Class, format string, args ...any) *Failure {
	return &Failure{Class: c, Err: fmt.Errorf(format, args...)}
}

// ClassOf returns the class of an error.
func ClassOf(err error) Class {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Class
	}
	return Transient
}

// ErrClosed settles what was not settled when its output was closed.
var ErrClosed = &Failure{Class: Unknown, Err: errors.New("the stream has stopped")}
