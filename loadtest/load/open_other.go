//go:build !linux

package load

import (
	"context"
	"errors"
)

// Open makes calls in an open loop. It needs Linux.
type Open struct{}

// NewOpen says that there is no open loop here.
func NewOpen(OpenPlan) (*Open, error) {
	return nil, errors.New("an open loop: it needs Linux")
}

// Run does nothing.
func (*Open) Run(context.Context, Pace) (*Outcome, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Open) Close() {}
