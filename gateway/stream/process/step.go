package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
)

const (
	slow          = 100 * time.Millisecond // of a step that waits for nobody
	linesPerSec   = 10                     // in the log, of a processor
	longestError  = 256                    // bytes of svc_error
	errorMeta     = "svc_error"
	firstBound    = 10 * time.Microsecond
	bucketFactor  = 2  // bounds are 4 times the one before: 2 bits
	boundedBucket = 11 // the last bound is 10.5 seconds
)

// A Step counts what a processor does.
type Step struct {
	Path  string // in the stream object, such as pipeline.processors[0]
	Label string
	Kind  string // the processor's name in the configuration

	errors  atomic.Uint64
	nanos   atomic.Int64
	buckets [boundedBucket + 1]atomic.Uint64
}

// Errors returns how many messages the processor refused.
func (s *Step) Errors() uint64 { return s.errors.Load() }

// Seconds returns a histogram: the number of messages, the sum of the times that they
// took, and for each bound in seconds the number of messages up to it.
func (s *Step) Seconds() (count uint64, sum float64, cumulative map[float64]uint64) {
	cumulative = make(map[float64]uint64, boundedBucket)
	bound := firstBound
	for i := range boundedBucket {
		count += s.buckets[i].Load()
		cumulative[bound.Seconds()] = count
		bound <<= bucketFactor
	}
	return count + s.buckets[boundedBucket].Load(), time.Duration(s.nanos.Load()).Seconds(), cumulative
}

func (s *Step) observe(took time.Duration) {
	bucket := 0
	if took > firstBound {
		bucket = min((bits.Len64(uint64((took-1)/firstBound))+bucketFactor-1)/bucketFactor, boundedBucket)
	}
	s.buckets[bucket].Add(1)
	s.nanos.Add(int64(took))
}

// work is what a processor does with an item. It returns where the item goes; with an
// error the item stays as it was. It settles nothing.
type work interface {
	run(it *item) (node, error)
}

// step is a processor in a chain: it measures its work, and sees to what becomes of a
// message that the work refuses.
type step struct {
	*Step
	site    *stream.Site
	trial   *trial // nil: this is none
	work    work
	waits   bool // for others
	onError streams.OnError
	next    node // for what on_error passes
	lines   lines
}

func (s *step) take(it item) {
	before, began := it, time.Now()
	to, err := s.guarded(&it)
	took := time.Since(began)
	s.observe(took)
	if took > slow && !s.waits {
		s.log(slog.LevelWarn, "a processor took long", "took", took)
	}
	if err == nil && it.doc != nil && it.doc != before.doc && it.doc.Size(s.site.MaxMessageBytes) > s.site.MaxMessageBytes {
		err = errors.New("the result is larger than max_message_bytes")
	}
	if err != nil {
		it = before
	}
	if s.trial != nil {
		s.trial.ran(s, it, to, err, took)
	}
	if err != nil {
		s.refused(it, err)
		return
	}
	to.take(it)
}

func (s *step) guarded(it *item) (to node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &mapping.PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	return s.work.run(it)
}

// refused does with an item what on_error says.
func (s *step) refused(it item, err error) {
	s.errors.Add(1)
	failure, ok := errors.AsType[*stream.Failure](err)
	if !ok {
		failure = &stream.Failure{Class: stream.Refused, Err: err}
	}
	if failure.By == "" {
		failure = &stream.Failure{Class: failure.Class, By: s.Label, After: failure.After, Err: failure.Err}
	}
	if p, ok := errors.AsType[*mapping.PanicError](err); ok {
		s.site.Log.Error("a processor panicked", "processor", s.Label, "message", it.message.ID, "panic", panicText(p.Value), "stack", string(p.Stack))
	} else {
		s.log(slog.LevelWarn, "a processor refused a message", "message", it.message.ID, "on_error", string(s.onError), "error", failure.Err.Error())
	}
	switch s.onError {
	case streams.Pass:
		it.doc = it.document().Copy()
		it.doc.SetMeta(errorMeta, bounded(failure.Err.Error(), longestError))
		s.next.take(it)
	case streams.Drop:
		it.settle(nil)
	default:
		it.settle(failure)
	}
}

// log writes a line, unless the processor has written too many.
func (s *step) log(level slog.Level, text string, args ...any) {
	left, ok := s.lines.take(time.Now())
	if !ok {
		return
	}
	if left > 0 {
		args = append(args, "suppressed", left)
	}
	s.site.Log.Log(context.Background(), level, text, append([]any{"processor", s.Label}, args...)...)
}

// panicText leaves out values that may be of a message.
func panicText(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", value)
}

func bounded(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return text[:n] + "..."
}

// lines bounds the lines of a processor.
type lines struct {
	mu         sync.Mutex
	second     int64
	written    int
	suppressed int
}

// take reports whether a line may be written, and how many were not since the last one.
func (l *lines) take(now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := now.Unix(); second != l.second {
		l.second, l.written = second, 0
	}
	if l.written == linesPerSec {
		l.suppressed++
		return 0, false
	}
	l.written++
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}
