package mapping

import (
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
)

func rangeSpec() *bloblang.PluginSpec {
	return bloblang.NewPluginSpec().
		Param(bloblang.NewInt64Param("start")).
		Param(bloblang.NewInt64Param("stop")).
		Param(bloblang.NewInt64Param("step").Default(1))
}

// newRange returns the items once and for all: they are computed while the script is
// compiled if the arguments are literals.
func newRange(args *bloblang.ParsedParams) (bloblang.Function, error) {
	var bounds [3]int64
	for i, name := range []string{"start", "stop", "step"} {
		var err error
		if bounds[i], err = args.GetInt64(name); err != nil {
			return nil, err
		}
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	var distance, width uint64
	switch {
	case step == 0:
		return nil, errors.New("the step of a range must not be 0")
	case step > 0 && start >= stop:
		return nil, fmt.Errorf("with a positive step, start (%d) must be less than stop (%d)", start, stop)
	case step < 0 && stop > start:
		return nil, fmt.Errorf("with a negative step, stop (%d) must not be greater than start (%d)", stop, start)
	case step > 0:
		distance, width = uint64(stop)-uint64(start), uint64(step)
	default:
		distance, width = uint64(start)-uint64(stop), -uint64(step)
	}
	n := distance / width
	if n > maxRange {
		return nil, fmt.Errorf("a range of %d items; at most %d are possible", n, maxRange)
	}
	items := make([]any, n)
	for i := range items {
		items[i] = start + step*int64(i)
	}
	return func() (any, error) { return items, nil }, nil
}

func repeatSpec() *bloblang.PluginSpec {
	return bloblang.NewPluginSpec().Param(bloblang.NewInt64Param("count")).Static()
}

func newRepeat(args *bloblang.ParsedParams) (bloblang.Method, error) {
	count, err := args.GetInt64("count")
	if err != nil {
		return nil, err
	}
	if count < 0 {
		return nil, fmt.Errorf("the count of repeat must not be negative: %d", count)
	}
	tooMuch := func(size int) error {
		if size > 0 && count > int64(maxRepeat/size) {
			return fmt.Errorf("%d bytes repeated %d times; at most %d bytes are possible", size, count, maxRepeat)
		}
		return nil
	}
	return func(v any) (any, error) {
		switch v := v.(type) {
		case string:
			if err := tooMuch(len(v)); err != nil || v == "" {
				return "", err
			}
			return strings.Repeat(v, int(count)), nil
		case []byte:
			if err := tooMuch(len(v)); err != nil || len(v) == 0 {
				return []byte{}, err
			}
			return bytes.Repeat(v, int(count)), nil
		}
		return nil, errors.New("repeat needs a string")
	}, nil
}

func decompressSpec() *bloblang.PluginSpec {
	return bloblang.NewPluginSpec().Param(bloblang.NewStringParam("algorithm"))
}

func newDecompress(args *bloblang.ParsedParams) (bloblang.Method, error) {
	algorithm, err := args.GetString("algorithm")
	if err != nil {
		return nil, err
	}
	var open func(io.Reader) (io.Reader, error)
	switch algorithm {
	case "gzip", "pgzip":
		open = func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	case "zlib":
		open = func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }
	case "flate":
		open = func(r io.Reader) (io.Reader, error) { return flate.NewReader(r), nil }
	case "bzip2":
		open = func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }
	default:
		return nil, fmt.Errorf("decompress(%q) is not possible; use gzip, pgzip, zlib, flate or bzip2", algorithm)
	}
	return bloblang.BytesMethod(func(packed []byte) (any, error) {
		r, err := open(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(r, maxDecompress+1))
		if err == nil && len(data) > maxDecompress {
			err = fmt.Errorf("more than %d bytes when decompressed", maxDecompress)
		}
		return data, err
	}), nil
}

func nanoIDSpec() *bloblang.PluginSpec {
	return bloblang.NewPluginSpec().
		Param(bloblang.NewInt64Param("length").Optional()).
		Param(bloblang.NewStringParam("alphabet").Optional())
}

const (
	nanoIDAlphabet = "_-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	nanoIDLength   = 21
)

func newNanoID(args *bloblang.ParsedParams) (bloblang.Function, error) {
	length, err := args.GetOptionalInt64("length")
	if err != nil {
		return nil, err
	}
	alphabet, err := args.GetOptionalString("alphabet")
	if err != nil {
		return nil, err
	}
	n, letters := int64(nanoIDLength), []rune(nanoIDAlphabet)
	switch {
	case alphabet != nil && length == nil:
		return nil, errors.New("nanoid with an alphabet needs a length")
	case length != nil && (*length < 1 || *length > maxNanoID):
		return nil, fmt.Errorf("nanoid of length %d; want 1 to %d", *length, maxNanoID)
	case alphabet != nil:
		letters = []rune(*alphabet)
	}
	if len(letters) == 0 || len(letters) > 255 {
		return nil, errors.New("the alphabet of nanoid must have 1 to 255 characters")
	}
	if length != nil {
		n = *length
	}
	return func() (any, error) {
		id := make([]rune, n)
		for i := range id {
			at, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
			if err != nil {
				return nil, err
			}
			id[i] = letters[at.Int64()]
		}
		return string(id), nil
	}, nil
}
