//go:build !linux

package shell

import (
	"errors"
	"os"
)

// hideInput is not supported: secrets are read from standard input.
func hideInput(*os.File) (undo func(), err error) { return nil, errors.ErrUnsupported }
