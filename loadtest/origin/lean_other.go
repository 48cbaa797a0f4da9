//go:build !linux

package main

import (
	"errors"
	"net"
)

func serveLean(net.Listener) error { return errors.New("-lean needs Linux") }
