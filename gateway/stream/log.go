package stream

import "context"

// A Log is a source that keeps its messages, so that each reader has a position of its own
// in it. Messages are in partitions, each with offsets that grow. Reading acknowledges
// nothing.
type Log interface {
	// Read passes messages on, from a position on or, with nil, from now on, until ctx ends
	// or a method of to returns an error, which Read returns. It mends its connection by
	// itself. The reading that begins now keeps the phase of the source's State.
	Read(ctx context.Context, from *Position, to Reader) error

	// ID returns a position as text without blanks, of at most MaxPositionID bytes; "" if
	// it does not fit.
	ID(p *Position) string

	// Position returns the position of an id, and false if it is none.
	Position(id string) (*Position, bool)
}

// MaxPositionID is the longest id of a position, in bytes.
const MaxPositionID = 256

// A Position is a place in a log.
type Position struct {
	Next []int64 // offset of the next message of each partition; those that are left out begin at 0
	Mark uint32  // tells this log from another one with its name; 0: not known
}

// Pass moves the position behind an entry.
func (p *Position) Pass(e *Entry) {
	for len(p.Next) <= e.Partition {
		p.Next = append(p.Next, 0)
	}
	p.Next[e.Partition], p.Mark = e.Offset+1, e.Mark
}

// An Entry is a message of a log.
type Entry struct {
	*Message
	Partition int
	Offset    int64
	Mark      uint32 // of the position behind it
}

// A Reader takes what is read of a log. Reading waits while it does.
type Reader interface {
	// Begin is called before the first entry, and again when entries were missed. With gap
	// set, what was asked for is no longer kept, or was of a log that is gone: at is the
	// oldest position there is.
	Begin(at *Position, gap bool) error

	// Take is called with the entries, in the order of each partition.
	Take(e *Entry) error
}

// A Process returns what becomes of a message, nothing if it is left out. Its error is that
// of ctx.
type Process func(ctx context.Context, m *Message) ([]*Message, error)

// A LogReader is an Output whose clients read the log of the source, each from its own
// position. It takes the place of the flow from the input.
type LogReader interface {
	Output

	// Follow has clients read a log. It does not wait.
	Follow(log Log, process Process)

	// Unfollow ends the reading of what is new. Clients still get what was read.
	Unfollow()
}
