//go:build !linux && !darwin && !freebsd

package doctor

import "errors"

func openFiles() (uint64, error) { return 0, errors.ErrUnsupported }

func space(string) (free, total uint64, err error) { return 0, 0, errors.ErrUnsupported }
