package pipeline

import (
	"strconv"
	"strings"
)

// Captures are what a trigger found in a request, by name, for the texts that
// refer to it. The zero value holds nothing.
type Captures struct {
	text []byte
	list []capture
}

type capture struct {
	name         string // of the trigger and of what it looked at, as in "0-X-Id"
	index, group int32  // which value that was; which group of the expression, -1 for all that matched
	from, to     int32  // in text
}

// Add notes what was found in the index-th value under name, or in one group of
// what was found, counted from 0, when group is not -1. name must not be made for
// the request: it is held on to. value is copied.
func (c *Captures) Add(name string, index, group int, value []byte) {
	from := int32(len(c.text))
	c.text = append(c.text, value...)
	c.list = append(c.list, capture{name: name, index: int32(index), group: int32(group), from: from, to: int32(len(c.text))})
}

// Get returns what was found under a reference, "0-X-Id-1" for the second value
// under the name "0-X-Id" and "0-X-Id-1-0" for the first group in that; nil when
// nothing was.
func (c *Captures) Get(reference string) []byte {
	for i := range c.list {
		if one := &c.list[i]; one.is(reference) {
			return c.text[one.from:one.to]
		}
	}
	return nil
}

func (c *capture) is(reference string) bool {
	rest, ok := strings.CutPrefix(reference, c.name)
	if !ok {
		return false
	}
	var room [24]byte
	want := strconv.AppendInt(append(room[:0], '-'), int64(c.index), 10)
	if c.group >= 0 {
		want = strconv.AppendInt(append(want, '-'), int64(c.group), 10)
	}
	return rest == string(want)
}

// Len returns how much was found.
func (c *Captures) Len() int { return len(c.list) }

// Cut forgets what was found after the first n.
func (c *Captures) Cut(n int) {
	c.list = c.list[:n]
	if n == 0 {
		c.text = c.text[:0]
	} else {
		c.text = c.text[:c.list[n-1].to]
	}
}

// room returns how many bytes are kept for the next request.
func (c *Captures) room() int { return cap(c.text) + 32*cap(c.list) }
