//go:build !linux

package upstream

import "errors"

// rawIO says that everything takes the ordinary route.
const rawIO = false

var errAbsent = errors.New("raw system calls are for Linux")

func rawRead(uintptr, []byte) (int, error) { return 0, errAbsent }

func rawWrite(uintptr, []byte) (int, error) { return 0, errAbsent }
