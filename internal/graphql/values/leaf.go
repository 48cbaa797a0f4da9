package values

import (
	"math"
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// enum checks the value of an enum that comes next.
func (c *Checker) enum(t schema.TypeID) {
	v := c.scan.Value()
	if v.Kind != jsonscan.String {
		c.invalid(v.Offset, c.enumKindMessage(t, v.Raw))
		return
	}
	if !c.schema.ValueNamed(t, c.decoded(v.Text())) {
		c.invalid(v.Offset, c.enumValueMessage(t, v.Text()))
	}
}

// scalar checks the value of a scalar that comes next. Scalars that the schema
// defines take any JSON.
func (c *Checker) scalar(t schema.TypeID) {
	v := c.scan.Value()
	switch c.schema.Types[t].Name {
	case "Int":
		c.int(v)
	case "Float":
		if v.Kind != jsonscan.Number || !finite(v.Raw) {
			c.invalid(v.Offset, "Float cannot represent non numeric value: "+inspect(v.Raw))
		}
	case "String":
		if v.Kind != jsonscan.String {
			c.invalid(v.Offset, "String cannot represent a non string value: "+inspect(v.Raw))
		}
	case "Boolean":
		if v.Kind != jsonscan.True && v.Kind != jsonscan.False {
			c.invalid(v.Offset, "Boolean cannot represent a non boolean value: "+inspect(v.Raw))
		}
	case "ID":
		if _, whole := integer(v.Raw); !whole && v.Kind != jsonscan.String {
			c.invalid(v.Offset, "ID cannot represent value: "+inspect(v.Raw))
		}
	}
}

func (c *Checker) int(v jsonscan.Value) {
	n, whole := integer(v.Raw)
	switch {
	case !whole:
		c.invalid(v.Offset, "Int cannot represent non-integer value: "+inspect(v.Raw))
	case n < math.MinInt32 || n > math.MaxInt32:
		c.invalid(v.Offset, "Int cannot represent non 32-bit signed integer value: "+inspect(v.Raw))
	}
}

// plainDigits is how many digits an integer may have for a float64 to be exact.
const plainDigits = 15

// integer returns the value of a number without a fraction, however it is
// written: 1e3 and 2.0 are integers. Other values are not.
func integer(raw []byte) (float64, bool) {
	if n, ok := plainInteger(raw); ok {
		return n, true
	}
	if raw[0] != '-' && raw[0]-'0' > 9 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil && f == math.Trunc(f)
}

// plainInteger is integer for those of few digits and nothing else.
func plainInteger(raw []byte) (n float64, ok bool) {
	digits := raw
	if raw[0] == '-' {
		digits = raw[1:]
	}
	if len(digits) > plainDigits {
		return 0, false
	}
	for _, d := range digits {
		if d-'0' > 9 {
			return 0, false
		}
		n = n*10 + float64(d-'0')
	}
	if raw[0] == '-' {
		n = -n
	}
	return n, true
}

// finite reports whether a number lies within the range of a float64.
func finite(raw []byte) bool {
	if _, ok := plainInteger(raw); ok {
		return true
	}
	_, err := strconv.ParseFloat(string(raw), 64)
	return err == nil
}

// size returns the value of an integer from 0 on, and -1 for any other value.
func size(raw []byte) int64 {
	n, whole := integer(raw)
	switch {
	case !whole || n < 0:
		return -1
	case n >= math.MaxInt64:
		return math.MaxInt64
	default:
		return int64(n)
	}
}
