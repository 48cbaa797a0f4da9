//go:build !linux

package rig

import "errors"

// Pin does nothing: it needs Linux.
func (*Process) Pin(...int) error { return errors.ErrUnsupported }

// PinSelf does nothing: it needs Linux.
func PinSelf(...int) error { return errors.ErrUnsupported }
