//go:build !linux || 386

package rawio

import "errors"

// Supported says that everything takes the ordinary route.
const Supported = false

var errAbsent = errors.New("raw system calls are for Linux")

// Read always fails.
func Read(uintptr, []byte) (int, error) { return 0, errAbsent }

// Write always fails.
func Write(uintptr, []byte) (int, error) { return 0, errAbsent }
