// Package process runs the processors of event streams: it turns one message into none,
// one or several, and settles it when all of them are settled.
package process

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
)

// maxMeta bounds the metadata of a message that processors have made, in bytes.
const maxMeta = 64 << 10

// A Destination is where the messages of a chain go. Its functions settle each message
// once, and are called by any goroutine.
type Destination struct {
	// Take passes a message to the outputs.
	Take func(m *stream.Message, settle stream.Settle)

	// Bury passes a message to the dead letter of the stream; nil: it has none.
	Bury func(m *stream.Message, reason string, settle stream.Settle)
}

// A Chain is the compiled processors of a stream.
type Chain struct {
	site    *stream.Site
	first   node
	to      Destination
	steps   []*Step
	batches []*batch
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	close   []func()
}

// node is what an item comes to: a step, or an end.
type node interface{ take(it item) }

// item is a message on its way through a chain. It has one holder, who settles it.
type item struct {
	message *stream.Message
	id      string       // "": that of message
	doc     *mapping.Doc // what became of message; nil: nothing was changed
	settle  stream.Settle
	fold    *fold              // of the innermost branch; nil: none
	into    *[]*stream.Message // of Become; nil: what the item becomes goes to the destination
}

func (it *item) document() *mapping.Doc {
	if it.doc != nil {
		return it.doc
	}
	return it.message.Doc()
}

// encoded returns the item as a message.
func (it *item) encoded(limit int) (*stream.Message, error) {
	m := it.message
	if it.doc != nil {
		var err error
		if m, err = m.With(it.doc); err != nil {
			return nil, err
		}
		if it.id != "" {
			m.ID = it.id
		}
	}
	if len(m.Body) > limit && it.doc != nil {
		return nil, fmt.Errorf("the message has %d bytes, more than max_message_bytes", len(m.Body))
	}
	if meta := m.Size() - len(m.Body) - len(m.Key); meta > maxMeta && it.doc != nil {
		return nil, fmt.Errorf("the metadata has %d bytes; at most %d are possible", meta, maxMeta)
	}
	return m, nil
}

// Compile compiles the processors of a stream, without connecting. The error joins all
// problems; each begins with the path of the processor.
func Compile(list []streams.Processor, site *stream.Site) (*Chain, error) {
	return compile(list, site, nil)
}

func compile(list []streams.Processor, site *stream.Site, t *trial) (*Chain, error) {
	c := &Chain{site: site}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	p := &compiler{chain: c, trial: t}
	c.first = p.list(list, (*end)(c))
	if p.problems != nil {
		c.Close()
		slices.Reverse(p.problems) // they were found from the end
		return nil, errors.Join(p.problems...)
	}
	return c, nil
}

// Start sets the destination. It is called once, before Take.
func (c *Chain) Start(to Destination) { c.to = to }

// Take passes a message through the processors, on the goroutine that calls it. settle is
// called once, when everything that the message became is settled: with nil, or with the
// first error. A batch may hold the message until later.
func (c *Chain) Take(m *stream.Message, settle stream.Settle) {
	c.first.take(item{message: m, settle: settle})
}

// Become passes a message through the processors, none of which is a batch or a dead letter,
// and returns what it has become, in order: nothing if it is filtered.
func (c *Chain) Become(m *stream.Message) (all []*stream.Message, err error) {
	c.first.take(item{message: m, settle: func(e error) { err = e }, into: &all})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Flush passes on what batches hold, without waiting for more.
func (c *Chain) Flush() {
	for _, b := range c.batches {
		b.flush()
	}
}

// Close flushes, and ends the calls that processors make. The chain is not used after it.
func (c *Chain) Close() {
	c.Flush()
	c.cancel()
	for _, closing := range c.close {
		closing()
	}
}

// Steps returns the processors, nested ones as well.
func (c *Chain) Steps() []*Step { return c.steps }

// end is the end of a chain.
type end Chain

func (e *end) take(it item) {
	m, err := it.encoded(e.site.MaxMessageBytes)
	if err != nil {
		it.settle(&stream.Failure{Class: stream.Refused, By: "processors", Err: err})
		return
	}
	if it.into != nil {
		*it.into = append(*it.into, m)
		it.settle(nil)
		return
	}
	e.to.Take(m, it.settle)
}

// dropped is the end of filtered messages.
type dropped struct{}

func (dropped) take(it item) { it.settle(nil) }
