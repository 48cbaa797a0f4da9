package process

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
)

// batch is the batch processor: it holds messages until they make one array.
type batch struct {
	step  *step
	count int // 0: unlimited
	bytes int
	wait  time.Duration // 0: for ever

	mu    sync.Mutex
	held  []item
	size  int
	timer *time.Timer
	last  chan struct{} // closed when the batch before was passed on; nil: there was none
}

func (p *compiler) batch(of *streams.Batch, s *step) work {
	b := &batch{step: s, count: of.Count, bytes: s.site.MaxMessageBytes, wait: of.Period}
	if of.MaxBytes > 0 {
		b.bytes = min(b.bytes, of.MaxBytes)
	}
	p.chain.batches = append(p.chain.batches, b)
	return b
}

// holding is where an item goes that the batch holds.
type holding struct{ full []*passing }

// passing is a batch on its way, after the one before.
type passing struct {
	batch *batch
	items []item
	after <-chan struct{}
	done  chan struct{}
}

func (h *holding) take(item) {
	for _, one := range h.full {
		one.pass()
	}
}

func (b *batch) run(it *item) (node, error) {
	doc := it.document()
	if err := doc.Decode(); err != nil {
		return nil, err
	}
	body, err := doc.Bytes()
	if err != nil {
		return nil, err
	}
	size := len(body) + 1
	b.mu.Lock()
	defer b.mu.Unlock()
	h := &holding{}
	if len(b.held) > 0 && b.size+size+1 > b.bytes {
		h.full = append(h.full, b.detach())
	}
	b.held = append(b.held, *it)
	b.size += size
	switch {
	case len(b.held) == b.count || b.size+1 > b.bytes:
		h.full = append(h.full, b.detach())
	case len(b.held) == 1 && b.wait > 0:
		b.expect()
	}
	return h, nil
}

// expect passes on the batch that has just begun when its time is up. b.mu is held.
func (b *batch) expect() {
	var timer *time.Timer
	timer = time.AfterFunc(b.wait, func() {
		b.mu.Lock()
		var due *passing
		if b.timer == timer && len(b.held) > 0 {
			due = b.detach()
		}
		b.mu.Unlock()
		if due != nil {
			due.pass()
		}
	})
	b.timer = timer
}

// detach takes what is held. b.mu is held.
func (b *batch) detach() *passing {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	p := &passing{batch: b, items: b.held, after: b.last, done: make(chan struct{})}
	b.held, b.size, b.last = nil, 0, p.done
	return p
}

// flush passes on what is held.
func (b *batch) flush() {
	b.mu.Lock()
	var due *passing
	if len(b.held) > 0 {
		due = b.detach()
	}
	b.mu.Unlock()
	if due != nil {
		due.pass()
	}
}

// pass passes the batch on as one message, in the order in which batches were made.
func (p *passing) pass() {
	defer close(p.done)
	if p.after != nil {
		<-p.after
	}
	settle := func(err error) {
		for i := range p.items {
			p.items[i].settle(err)
		}
	}
	docs := make([]*mapping.Doc, len(p.items))
	ids := sha256.New()
	for i := range p.items {
		docs[i] = p.items[i].document()
		_, _ = ids.Write([]byte(p.items[i].message.ID + p.items[i].id + "\n"))
	}
	doc, err := mapping.Join(docs)
	if err != nil {
		settle(&stream.Failure{Class: stream.Refused, By: p.batch.step.Label, Err: err})
		return
	}
	first := p.items[0].message
	p.batch.step.next.take(item{
		message: &stream.Message{
			ID:  "batch-" + hex.EncodeToString(ids.Sum(nil)[:16]), // of its members: another batch has another id
			Key: first.Key, At: first.At, Attempt: first.Attempt,
		},
		doc: doc, settle: settle,
	})
}
