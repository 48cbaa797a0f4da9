// Package mapping compiles and runs mapping scripts (Bloblang) without access to the
// machine: no files, no environment, no state between messages.
package mapping

import (
	"errors"
	"fmt"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure" // times, typed numbers
	"github.com/redpanda-data/benthos/v4/public/service"
)

var language = sync.OnceValue(func() *bloblang.Environment {
	return bloblang.NewEnvironment().OnlyPure().WithDisabledImports()
})

// A Problem is what is wrong with a script. Line and Column begin with 1; they are 0 when
// the place is not known.
type Problem struct {
	Line, Column int
	Message      string
}

// Error implements error.
func (p *Problem) Error() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message) }

// A Doc is a body with metadata. A pipeline decodes the body at the first step that needs
// it, and encodes it when Bytes is called.
type Doc struct{ message *service.Message }

// NewDoc returns a doc of a body, which is not written to, without metadata.
func NewDoc(body []byte) *Doc { return &Doc{service.NewMessage(body)} }

// Bytes returns the body.
func (d *Doc) Bytes() ([]byte, error) { return d.message.AsBytes() }

// SetMeta sets a metadata value.
func (d *Doc) SetMeta(name, value string) { d.message.MetaSet(name, value) }

// Meta returns a metadata value, "" for none.
func (d *Doc) Meta(name string) string {
	value, _ := d.message.MetaGet(name)
	return value
}

// EachMeta calls do for the metadata, in no order.
func (d *Doc) EachMeta(do func(name, value string)) {
	_ = d.message.MetaWalk(func(name, value string) error { do(name, value); return nil })
}

// Copy returns a doc that can be changed without changing d.
func (d *Doc) Copy() *Doc { return &Doc{d.message.Copy()} }

// A Script is a compiled mapping. Goroutines may share it.
type Script struct{ executor *bloblang.Executor }

// Compile compiles a script. Its error is a *Problem.
func Compile(text string) (*Script, error) {
	executor, err := language().Parse(text)
	if err != nil {
		problem := &Problem{Message: err.Error()}
		if at, ok := errors.AsType[*bloblang.ParseError](err); ok {
			problem.Line, problem.Column, problem.Message = at.Line, at.Column, at.ErrorMultiline()
		}
		return nil, problem
	}
	return &Script{executor}, nil
}

// Run returns the mapped doc, or nil if the script filters it. d stays as it is.
func (s *Script) Run(d *Doc) (*Doc, error) {
	mapped, err := d.message.BloblangQuery(s.executor)
	if err != nil || mapped == nil {
		return nil, err
	}
	return &Doc{mapped}, nil
}
