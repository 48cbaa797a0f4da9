package observe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/metrics"
)

// AccessOptions are the settings of the access log.
type AccessOptions struct {
	Target   string  // stdout, file or off
	File     string  // path, for file; appended to
	SampleOK float64 // share of successful requests that are written, in [0, 1]; refusals and errors are always written, except for shed calls
}

const (
	blockSize    = 256 << 10 // bytes of one write
	maxBlocks    = 16        // blocks that wait to be written; beyond, lines are dropped
	flushEvery   = 250 * time.Millisecond
	finishWithin = 3 * time.Second // for what is left when the log ends
)

// AccessLog writes one JSON line for each request. Requests never wait for the disk:
// lines are collected in blocks, and dropped and counted when blocks cannot be written
// fast enough.
type AccessLog struct {
	log      *slog.Logger
	path     string // "" unless it is a file
	out      io.WriteCloser
	sample   uint64 // successes are written if a random number is below
	failing  bool   // the last write failed; used by Run alone
	reopened chan struct{}

	mu    sync.Mutex
	block []byte

	full    chan []byte
	spare   chan []byte
	dropped atomic.Uint64
}

// OpenAccessLog opens the access log, or returns nil if it is off. Run writes it.
func OpenAccessLog(o AccessOptions, log *slog.Logger) (*AccessLog, error) {
	switch o.Target {
	case "off":
		return nil, nil
	case "stdout":
		return newAccessLog(keepOpen{os.Stdout}, o, log), nil
	case "file":
		f, err := openLog(o.File)
		if err != nil {
			return nil, fmt.Errorf("opening the access log: %w", err)
		}
		return newAccessLog(f, o, log), nil
	}
	return nil, fmt.Errorf("access log: target %q: want stdout, file or off", o.Target)
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
}

// keepOpen is a stream that the log must not close.
type keepOpen struct{ io.Writer }

// Close does nothing.
func (keepOpen) Close() error { return nil }

func newAccessLog(out io.WriteCloser, o AccessOptions, log *slog.Logger) *AccessLog {
	l := &AccessLog{
		log: log, out: out,
		reopened: make(chan struct{}, 1),
		block:    make([]byte, 0, blockSize),
		full:     make(chan []byte, maxBlocks),
		spare:    make(chan []byte, 4),
	}
	if o.Target == "file" {
		l.path = o.File
	}
	l.sample = math.MaxUint64
	if o.SampleOK < 1 {
		l.sample = uint64(max(o.SampleOK, 0) * math.MaxUint64)
	}
	return l
}

// Dropped returns how many lines could not be written.
func (l *AccessLog) Dropped() uint64 { return l.dropped.Load() }

var linesDropped = metrics.Describe("log_dropped_total", "Access-log lines that could not be written.")

func (l *AccessLog) metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) { ch <- metrics.Counter(linesDropped, l.Dropped()) }, linesDropped)
}

// Reopen makes Run open the file again, after log rotation has moved it. It does nothing
// for other targets.
func (l *AccessLog) Reopen() {
	select {
	case l.reopened <- struct{}{}:
	default: // already requested
	}
}

// Run writes lines until ctx ends, and then for up to three seconds the rest: the reader
// of a pipe may have stopped. It must run once.
func (l *AccessLog) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() { l.serve(ctx); close(done) }()
	<-ctx.Done()
	patience := time.NewTimer(finishWithin)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		l.log.Error("writing the end of the access log timed out; its last lines are lost")
	}
}

func (l *AccessLog) serve(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case b := <-l.full:
			l.write(b)
		case <-tick.C:
			l.flush()
		case <-l.reopened:
			l.reopen()
		case <-ctx.Done():
			l.finish()
			return
		}
	}
}

// shedSample is the share of shed calls that are written. There are many of them, and
// writing lines would add to the overload.
const shedSample = math.MaxUint64 / 100

// wants reports whether a request is written.
func (l *AccessLog) wants(o *observed) bool {
	switch r := o.ex.Rejection; {
	case r != nil && r.Reason == pipeline.ReasonOverloaded:
		return rand.Uint64() < shedSample
	case r != nil || o.status >= 400 || o.ex.ReportOnly[0].Reason != pipeline.ReasonNone || l.sample == math.MaxUint64:
		return true
	}
	return rand.Uint64() < l.sample
}

// add adds the line of a request, unless sampling leaves it out.
func (l *AccessLog) add(m *meter, o *observed) {
	if !l.wants(o) {
		return
	}
	line := appendLine(o.ex.Buf[:0], m, o)
	o.ex.Buf = line
	l.put(line)
}

// put adds a line, or drops it when too many wait to be written.
func (l *AccessLog) put(line []byte) {
	l.mu.Lock()
	if len(l.block)+len(line) > blockSize && !l.rotate() {
		l.mu.Unlock()
		l.dropped.Add(1)
		return
	}
	l.block = append(l.block, line...)
	l.mu.Unlock()
}

// rotate begins a new block, unless too many wait to be written. The caller holds mu.
func (l *AccessLog) rotate() bool {
	if len(l.block) == 0 {
		return true
	}
	select {
	case l.full <- l.block:
	default:
		return false
	}
	select {
	case l.block = <-l.spare:
	default:
		l.block = make([]byte, 0, blockSize)
	}
	return true
}

// flush queues the current block for writing.
func (l *AccessLog) flush() {
	l.mu.Lock()
	l.rotate()
	l.mu.Unlock()
}

func (l *AccessLog) finish() {
	for l.drain(); ; l.drain() {
		l.flush()
		if len(l.full) == 0 {
			break
		}
	}
	if err := l.out.Close(); err != nil {
		l.log.Error("closing the access log", "err", err)
	}
}

func (l *AccessLog) drain() {
	for {
		select {
		case b := <-l.full:
			l.write(b)
		default:
			return
		}
	}
}

// write writes a block. It logs when writing begins to fail and when it works again.
func (l *AccessLog) write(block []byte) {
	n, err := l.out.Write(block)
	switch {
	case err != nil:
		l.dropped.Add(uint64(bytes.Count(block[n:], []byte{'\n'})))
		if !l.failing {
			l.log.Error("writing the access log; lines are dropped until it works again", "err", err)
		}
	case l.failing:
		l.log.Info("writing the access log works again", "dropped", l.Dropped())
	}
	l.failing = err != nil
	select {
	case l.spare <- block[:0]:
	default:
	}
}

// reopen opens the file again. If that fails, the file that is open stays in use.
func (l *AccessLog) reopen() {
	if l.path == "" {
		return
	}
	l.flush()
	l.drain()
	f, err := openLog(l.path)
	if err != nil {
		l.log.Error("reopening the access log; it goes on in the file that was open", "err", err)
		return
	}
	if err := l.out.Close(); err != nil {
		l.log.Error("closing the access log that was replaced", "err", err)
	}
	l.out = f
}
