package pipeline

import (
	"strconv"
	"strings"
)

// Captures are the matches of a rewrite's triggers, by name, for the templates that
// refer to them. The zero value is empty.
type Captures struct {
	text []byte
	list []capture
}

type capture struct {
	name         string // number of the trigger and name of the input, as in "0-X-Id"
	index, group int32  // of the value; of the group, -1 for the whole match
	from, to     int32  // in text
}

// Add records the match in the index-th value under name, or one group of the
// expression, counted from 0, when group is not -1. name is retained: it must not
// alias a buffer of the request. value is copied.
func (c *Captures) Add(name string, index, group int, value []byte) {
	from := int32(len(c.text))
	c.text = append(c.text, value...)
	c.list = append(c.list, capture{name: name, index: int32(index), group: int32(group), from: from, to: int32(len(c.text))})
}

// Get returns the match of a reference: "0-X-Id-1" is the second value under the
// name "0-X-Id", "0-X-Id-1-0" the first group in it. It returns nil when nothing
// matched.
func (c *Captures) Get(reference string) []byte {
	for i := range c.list {
		if one := &c.list[i]; one.matches(reference) {
			return c.text[one.from:one.to]
		}
	}
	return nil
}

func (c *capture) matches(reference string) bool {
	rest, ok := strings.CutPrefix(reference, c.name)
	if !ok {
		return false
	}
	var buf [24]byte
	want := strconv.AppendInt(append(buf[:0], '-'), int64(c.index), 10)
	if c.group >= 0 {
		want = strconv.AppendInt(append(want, '-'), int64(c.group), 10)
	}
	return rest == string(want)
}

// Len returns the number of matches.
func (c *Captures) Len() int { return len(c.list) }

// Cut drops all matches but the first n.
func (c *Captures) Cut(n int) {
	c.list = c.list[:n]
	if n == 0 {
		c.text = c.text[:0]
	} else {
		c.text = c.text[:c.list[n-1].to]
	}
}

// size returns how many bytes are kept for the next request.
func (c *Captures) size() int { return cap(c.text) + 32*cap(c.list) }
