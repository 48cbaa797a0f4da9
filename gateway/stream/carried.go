package stream

import "strings"

// Bounds of the metadata that a message carries through a message broker.
const (
	maxCarried      = 64
	maxCarriedBytes = 8 << 10
)

// A Carrier collects metadata that came with a message of a message broker, up to 64 values
// of 8 KiB together.
type Carrier struct {
	meta []Meta
	room int
}

// NewCarrier returns an empty carrier.
func NewCarrier() *Carrier { return &Carrier{room: maxCarriedBytes} }

// Add adds a value unless there is no room for it, which it reports.
func (c *Carrier) Add(name, value string) bool {
	n := len(name) + len(value)
	if len(c.meta) >= maxCarried || n > c.room {
		return false
	}
	c.room -= n
	c.meta = append(c.meta, Meta{strings.ToLower(name), value})
	return true
}

// Meta returns what was added.
func (c *Carrier) Meta() []Meta { return c.meta }
