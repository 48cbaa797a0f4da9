// Package mapping compiles and runs mapping scripts (Bloblang) without access to the
// machine: no files, no environment, no state between messages.
package mapping

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

// A Script is a compiled mapping. Goroutines may share it.
type Script struct {
	executor *bloblang.Executor
	name     key
}

// Compile returns the script of a text; all that use the same text share it. Its error is
// a *Problem.
func Compile(text string) (*Script, error) { return language().script(key{text: text}) }

// Run returns the mapped doc, or nil if the script filters it. d stays as it is.
func (s *Script) Run(d *Doc) (*Doc, error) {
	mapped, err := s.run(nil, d)
	if err != nil || mapped == nil {
		return nil, err
	}
	return &Doc{message: mapped}, nil
}

// Check returns what a script says about a doc. Anything but true and false is an error.
func (s *Script) Check(d *Doc) (bool, error) {
	answer, err := s.run(d.Empty().message, d)
	if err != nil {
		return false, err
	}
	if answer == nil {
		return false, errors.New("the check deletes the message; it must be true or false")
	}
	value, err := answer.AsStructured()
	if err != nil {
		return false, errors.New("the check is not true or false")
	}
	yes, ok := value.(bool)
	if !ok {
		return false, fmt.Errorf("the check is %s; it must be true or false", typeOf(value))
	}
	return yes, nil
}

// Overlay returns a copy of onto on which the script has made its assignments, or nil if
// it deletes the whole of it. In the script, root is the copy and this is from; @name is
// metadata of onto, and metadata("name") is that of from.
func (s *Script) Overlay(onto, from *Doc) (*Doc, error) {
	mapped, err := s.run(onto.Copy().message, from)
	if err != nil || mapped == nil {
		return nil, err
	}
	return &Doc{message: mapped}, nil
}

// run returns the result of the script for a doc: a message of its own if onto is nil,
// else onto, which it changes.
func (s *Script) run(onto *service.Message, from *Doc) (mapped *service.Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			mapped, err = nil, &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	from.mu.Lock()
	defer from.mu.Unlock()
	if onto == nil {
		return from.message.BloblangQuery(s.executor)
	}
	return onto.BloblangMutateFrom(s.executor, from.message)
}

// A PanicError is a panic of a script, which is a bug in the language, with the stack.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error. It does not show the value, which may be of the message.
func (e *PanicError) Error() string { return "the script has panicked" }

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string, []byte:
		return "a string"
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	}
	return "a number"
}
