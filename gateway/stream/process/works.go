package process

import (
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/mapping"
)

const (
	maxItems = 10_000 // of a message that is split
	maxField = 4 << 10
)

type header struct {
	name  string
	value *mapping.Template
}

// mapWork is the mapping processor.
type mapWork struct {
	script *mapping.Script
	next   node
}

func (w *mapWork) run(it *item) (node, error) {
	doc, err := w.script.Run(it.document())
	if err != nil {
		return nil, err
	}
	if doc == nil {
		return dropped{}, nil
	}
	it.doc = doc
	return w.next, nil
}

// filterWork keeps the messages that its check is true for.
type filterWork struct {
	check *mapping.Script
	next  node
}

func (w *filterWork) run(it *item) (node, error) {
	keep, err := w.check.Check(it.document())
	if err != nil {
		return nil, err
	}
	if !keep {
		return dropped{}, nil
	}
	return w.next, nil
}

// switchWork chooses the processors of the first case whose check is true.
type switchWork struct {
	cases []switchCase
	from  int // the first case that is looked at
	next  node
}

type switchCase struct {
	check *mapping.Script // nil: always
	body  node
}

func (w *switchWork) run(it *item) (node, error) {
	for i := w.from; i < len(w.cases); i++ {
		if w.cases[i].check == nil {
			return w.cases[i].body, nil
		}
		yes, err := w.cases[i].check.Check(it.document())
		if err != nil {
			return nil, fmt.Errorf("case %d: %w", i, err)
		}
		if yes {
			return w.cases[i].body, nil
		}
	}
	return w.next, nil
}

// branchWork runs processors on a copy, and folds the result back.
type branchWork struct {
	request *mapping.Script // nil: the whole message
	first   node
	result  *mapping.Script // nil: the message stays as it is
	next    node
}

// fold collects what the processors of a branch make of one message. Nothing in a branch
// settles a message later, so that it is complete when the first of them returns.
type fold struct {
	results []item
	err     error
}

func (f *fold) settle(err error) {
	if f.err == nil {
		f.err = err
	}
}

// folded is the end of a branch.
type folded struct{}

func (folded) take(it item) { it.fold.results = append(it.fold.results, it) }

func (w *branchWork) run(it *item) (node, error) {
	original := it.document()
	request := original
	if w.request != nil {
		var err error
		if request, err = w.request.Overlay(original.Empty(), original); err != nil {
			return nil, fmt.Errorf("request_map: %w", err)
		}
		if request == nil {
			return w.next, nil
		}
	}
	f := &fold{}
	w.first.take(item{message: it.message, id: it.id, doc: request, settle: f.settle, fold: f})
	switch {
	case f.err != nil:
		return nil, f.err
	case len(f.results) != 1:
		return nil, fmt.Errorf("the branch yields %d messages; it must yield one", len(f.results))
	case w.result == nil:
		return w.next, nil
	}
	doc, err := w.result.Overlay(original, f.results[0].document())
	if err != nil {
		return nil, fmt.Errorf("result_map: %w", err)
	}
	if doc != nil {
		it.doc = doc
	}
	return w.next, nil
}

// splitWork makes a message of each item of an array.
type splitWork struct {
	path string
	next node
}

func (w *splitWork) run(it *item) (node, error) {
	docs, err := it.document().Items(w.path, maxItems)
	if err != nil {
		return nil, err
	}
	return &parts{docs, w.next}, nil
}

// parts passes on the parts of an item. Their ids are the same each time that the item is
// split, so that receivers can tell repeats.
type parts struct {
	docs []*mapping.Doc
	next node
}

func (p *parts) take(it item) {
	id := it.id
	if id == "" {
		id = it.message.ID
	}
	settle := joint(len(p.docs), it.settle)
	for i, doc := range p.docs {
		p.next.take(item{message: it.message, id: id + "-" + strconv.Itoa(i), doc: doc, settle: settle, fold: it.fold, into: it.into})
	}
}

// joint returns what settles each of n messages; parent is settled after the last one,
// with the first error.
func joint(n int, parent stream.Settle) stream.Settle {
	if n == 0 {
		parent(nil)
		return nil
	}
	var mu sync.Mutex
	var first error
	return func(err error) {
		mu.Lock()
		if first == nil {
			first = err
		}
		n--
		last, err := n == 0, first
		mu.Unlock()
		if last {
			parent(err)
		}
	}
}

// logWork writes a line to the log.
type logWork struct {
	step    *step
	level   slog.Level
	message *mapping.Template
	fields  []header
}

func (w *logWork) run(it *item) (node, error) {
	text, err := w.message.Text(it.document)
	if err != nil {
		return nil, err
	}
	args := []any{"message", it.message.ID}
	for _, one := range w.fields {
		value, err := one.value.Text(it.document)
		if err != nil {
			return nil, err
		}
		args = append(args, one.name, bounded(value, maxField))
	}
	w.step.log(w.level, bounded(text, maxField), args...)
	return w.step.next, nil
}

// buryWork sends messages to the dead letter.
type buryWork struct {
	chain  *Chain
	reason *mapping.Template
}

func (w *buryWork) run(it *item) (node, error) {
	reason, err := w.reason.Text(it.document)
	if err != nil {
		return nil, err
	}
	if w.chain.to.Bury == nil {
		return nil, stream.Failf(stream.Permanent, "the stream has no dead letter: %s", bounded(reason, longestError))
	}
	m, err := it.encoded(w.chain.site.MaxMessageBytes)
	if err != nil {
		return nil, err
	}
	return &buried{w.chain, m, bounded(reason, longestError)}, nil
}

type buried struct {
	chain   *Chain
	message *stream.Message
	reason  string
}

func (b *buried) take(it item) { b.chain.to.Bury(b.message, b.reason, it.settle) }

// replyWork keeps the message as the answer for its sender.
type replyWork struct {
	limit int
	next  node
}

func (w *replyWork) run(it *item) (node, error) {
	if it.message.Reply == nil {
		return w.next, nil
	}
	m, err := it.encoded(w.limit)
	if err != nil {
		return nil, err
	}
	it.message.Reply.Set(m)
	return w.next, nil
}
