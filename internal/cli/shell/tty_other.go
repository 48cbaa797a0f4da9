//go:build !linux

package shell

import (
	"errors"
	"os"
)

// hideInput is for systems on which nothing hides what is typed: secrets are read
// from standard input there.
func hideInput(*os.File) (undo func(), err error) { return nil, errors.ErrUnsupported }
