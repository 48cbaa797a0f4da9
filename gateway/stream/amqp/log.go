package amqp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/sleep"
)

// A Log is a queue that keeps messages, read by clients at their own positions. It has one
// partition. The mark of a position is a checksum of the message before it: in a queue that
// was deleted and declared again, another message has its offset.
type Log struct {
	config *streams.BrokerInput
	site   *stream.Site
	group  *group
	queue  queue
}

// maxReadAhead bounds the messages that the broker sends ahead to a reader.
const maxReadAhead = 64

// NewLog returns the log of the only topic of c, which has Retain. Its error is about a topic
// that is too long.
func (p *Pool) NewLog(c *streams.BrokerInput, site *stream.Site) (*Log, error) {
	q, err := logOf(c, c.Topics[0])
	if err != nil {
		return nil, err
	}
	site.State.Lag.Store(-1)
	site.State.Enter(stream.Starting)
	return &Log{config: c, site: site, group: p.group(&c.Servers, false), queue: q}, nil
}

// fromStart takes the place of the mark in the id of a position that has none.
const fromStart = "start"

// ID implements stream.Log: the mark and the offset of the message before the position, such
// as 1b4f0a97-312, or start-312 for a position before offset 312 without a mark.
func (*Log) ID(p *stream.Position) string {
	if p.Mark == 0 {
		return fromStart + "-" + strconv.FormatInt(p.Next[0], 10)
	}
	return fmt.Sprintf("%08x-%d", p.Mark, p.Next[0]-1)
}

// Position implements stream.Log.
func (l *Log) Position(id string) (*stream.Position, bool) {
	mark, text, _ := strings.Cut(id, "-")
	offset, err := strconv.ParseInt(text, 10, 63)
	if err != nil || offset < 0 {
		return nil, false
	}
	p := &stream.Position{Next: []int64{offset}}
	if mark != fromStart {
		n, err := strconv.ParseUint(mark, 16, 32)
		if err != nil {
			return nil, false
		}
		p.Next[0]++
		p.Mark = uint32(n)
	}
	return p, l.ID(p) == id // one position has one id
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// markOf returns the mark of the position behind a delivery.
func markOf(d *amqp.Delivery) uint32 {
	sum := crc32.Checksum([]byte(d.MessageId), castagnoli)
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(d.Timestamp.Unix()))
	sum = crc32.Update(sum, castagnoli, at[:])
	return max(1, crc32.Update(sum, castagnoli, d.Body))
}

// reading is one call of Read.
type reading struct {
	log   *Log
	to    stream.Reader
	leads bool             // it keeps the phase of the state
	at    *stream.Position // where it goes on; nil: now
	begun bool             // Begin was called
	lost  bool             // at is not in the queue: it goes on at the oldest message
}

// takeError is an error of the reader.
type takeError struct{ error }

// Read implements stream.Log.
func (l *Log) Read(ctx context.Context, from *stream.Position, to stream.Reader) error {
	r := &reading{log: l, to: to, leads: from == nil}
	if from != nil {
		r.at = &stream.Position{Next: slices.Clone(from.Next), Mark: from.Mark}
	}
	p := pacer{timing: &l.group.pool.timing}
	for ctx.Err() == nil {
		l.site.State.Attempts.Add(1)
		began := time.Now()
		err, connected := r.epoch(ctx)
		if taken, ok := errors.AsType[*takeError](err); ok {
			return taken.error
		}
		if ctx.Err() != nil || errors.Is(err, errLost) {
			continue
		}
		pause, failing := p.next(err, connected, time.Since(began))
		r.failed(err, failing)
		_ = sleep.For(ctx, pause) // it ends early with the context
	}
	return ctx.Err()
}

func (r *reading) failed(err error, failing bool) {
	site := r.log.site
	site.State.Fail(err)
	if !r.leads {
		return
	}
	phase := stream.Reconnecting
	if failing {
		phase = stream.Failing
	}
	if was, _ := site.State.Phase(); failing && was != phase {
		site.Log.Error("the message broker refuses a stream", "stream", site.Stream, "input", site.Label, "error", err)
	}
	site.State.Enter(phase)
}

// errLost ends an epoch whose position is not in the queue.
var errLost = errors.New("the position is not in the queue")

// epoch reads until the connection or ctx ends.
func (r *reading) epoch(ctx context.Context) (err error, connected bool) {
	g := r.log.group
	l, err := g.take(ctx, r.log.site.Dial)
	if err != nil {
		return err, false
	}
	defer g.release(l)
	o, err := r.open(l)
	if err != nil {
		return err, true
	}
	defer o.shut()
	if r.at == nil && !r.lost {
		if r.at, err = o.newest(ctx); err != nil {
			return err, true
		}
		if err := r.begin(r.at, false); err != nil {
			return err, true
		}
	}
	if r.leads {
		r.log.site.State.Enter(stream.Running)
	}
	return r.pass(ctx, o), true
}

func (r *reading) begin(at *stream.Position, gap bool) error {
	if r.begun && !gap {
		return nil
	}
	r.begun = true
	if err := r.to.Begin(&stream.Position{Next: slices.Clone(at.Next), Mark: at.Mark}, gap); err != nil {
		return &takeError{err}
	}
	return nil
}

// An opened queue has the channel on which a reading consumes.
type opened struct {
	log    *Log
	link   *link
	ch     *amqp.Channel
	closes chan *amqp.Error
	from   <-chan amqp.Delivery
	latest *latest // nil: it is not asked for
	first  bool    // no delivery has come
	since  bool    // the first delivery must be of the position, or of a later one
	ahead  int     // deliveries that the broker sends without an acknowledgement
	unread uint64  // tag of the last delivery that is not acknowledged; 0: none
	count  int     // of those
}

// latest is a channel on which the last messages of the queue are consumed.
type latest struct {
	ch   *amqp.Channel
	from <-chan amqp.Delivery
}

// open opens a channel that consumes from the position of the reading.
func (r *reading) open(l *link) (*opened, error) {
	defer l.within(l.group.pool.timing.answer)()
	ch, err := l.conn.Channel()
	if err != nil {
		return nil, err
	}
	of := r.log
	o := &opened{log: of, link: l, ch: ch, first: true, ahead: max(1, min(of.config.CheckpointLimit, of.site.MaxInFlight, maxReadAhead))}
	if r.leads { // the others find the queue
		err = r.declare(o)
	}
	if err == nil {
		err = r.consume(o)
	}
	if err != nil {
		o.shut()
		return nil, err
	}
	return o, nil
}

func (r *reading) declare(o *opened) error {
	ch, err := exchange(o.link, o.log.config.Exchange)
	if err != nil {
		return err
	}
	defer o.link.shut(ch)
	return o.log.queue.declare(ch, o.log.config.Exchange)
}

func (r *reading) consume(o *opened) error {
	var at any = "first"
	switch {
	case r.lost:
	case r.at == nil:
		at = "next"
		if err := o.openLatest(); err != nil { // before the messages are consumed that come next: see newest
			return err
		}
	case r.at.Mark == 0:
		at, o.since = r.at.Next[0], true
	default:
		at, o.since = r.at.Next[0]-1, true // the message that the mark is of
	}
	if err := o.ch.Qos(o.ahead, 0, false); err != nil {
		return err
	}
	o.closes = o.ch.NotifyClose(make(chan *amqp.Error, 1))
	var err error
	if o.from, err = o.ch.Consume(o.log.queue.name, "", false, false, false, false, amqp.Table{"x-stream-offset": at}); err != nil {
		return &setupError{"consuming from queue " + o.log.queue.name, err}
	}
	return nil
}

func (o *opened) openLatest() error {
	ch, err := o.link.conn.Channel()
	if err != nil {
		return err
	}
	o.latest = &latest{ch: ch}
	if err := ch.Qos(1, 0, false); err != nil {
		return err
	}
	o.latest.from, err = ch.Consume(o.log.queue.name, "", false, false, false, false, amqp.Table{"x-stream-offset": "last"})
	return err
}

func (o *opened) shut() {
	o.link.shut(o.ch)
	if o.latest != nil {
		o.link.shut(o.latest.ch)
	}
}

// newest returns a position before all messages that o delivers. The broker does not say
// where the queue ends, but it delivers the last chunk that was written before o began: the
// position is behind the first message of that. Only a reading that is interrupted before it
// gets a message goes on there, and gets the rest of the chunk.
func (o *opened) newest(ctx context.Context) (*stream.Position, error) {
	defer o.link.within(o.link.group.pool.timing.answer)()
	defer func() {
		o.link.shut(o.latest.ch)
		o.latest = nil
	}()
	q, err := o.latest.ch.QueueDeclarePassive(o.log.queue.name, true, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	var empty <-chan time.Time
	if q.Messages == 0 { // or they were published a moment ago
		timer := time.NewTimer(o.link.group.pool.timing.empty)
		defer timer.Stop()
		empty = timer.C
	}
	select {
	case <-empty:
		return &stream.Position{Next: []int64{0}}, nil
	case d, ok := <-o.latest.from:
		if !ok {
			return nil, errors.New("the channel was closed")
		}
		offset, _ := integer(d.Headers["x-stream-offset"])
		return &stream.Position{Next: []int64{offset + 1}, Mark: markOf(&d)}, nil
	case err := <-o.closes:
		return nil, closedBy(err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pass passes deliveries on.
func (r *reading) pass(ctx context.Context, o *opened) error {
	var missing <-chan time.Time // a position behind the end of a new queue delivers nothing
	if o.since && r.at.Next[0] > 0 {
		timer := time.NewTimer(o.link.group.pool.timing.locate)
		defer timer.Stop()
		missing = timer.C
	}
	for {
		d, err := o.next(ctx, missing)
		if err == errLost {
			r.lost, r.at = true, nil
		}
		if err != nil {
			return err
		}
		missing = nil
		if err := r.deliver(o, &d); err != nil {
			return err
		}
	}
}

// next returns the next delivery. Before it waits, it acknowledges all others.
func (o *opened) next(ctx context.Context, missing <-chan time.Time) (d amqp.Delivery, err error) {
	ok := true
	select {
	case d, ok = <-o.from:
	default:
		o.acknowledge()
		select {
		case d, ok = <-o.from:
		case <-missing:
			return d, errLost
		case err := <-o.closes:
			return d, closedBy(err)
		case <-ctx.Done():
			return d, ctx.Err()
		}
	}
	switch {
	case ctx.Err() != nil:
		return d, ctx.Err()
	case !ok && o.ch.IsClosed():
		return d, closedBy(<-o.closes)
	case !ok:
		return d, fmt.Errorf("the queue %s was deleted", o.log.queue.name)
	}
	o.unread = d.DeliveryTag
	if o.count++; o.count >= (o.ahead+1)/2 {
		o.acknowledge()
	}
	return d, nil
}

// acknowledge has the broker send more. With the channel gone, it fails without harm.
func (o *opened) acknowledge() {
	if o.count > 0 {
		_ = o.ch.Ack(o.unread, true)
		o.count = 0
	}
}

// maxHole is how many offsets in a row may be without a message: the broker uses one for
// itself where a segment of the queue begins.
const maxHole = 1

// deliver passes a delivery on, and says so if messages before it are missing.
func (r *reading) deliver(o *opened, d *amqp.Delivery) error {
	offset, ok := integer(d.Headers["x-stream-offset"])
	if !ok {
		return fmt.Errorf("the queue %s has deliveries without an offset", r.log.queue.name)
	}
	first := o.first
	o.first = false
	gap := r.lost
	switch {
	case gap:
	case first && o.since && offset == r.at.Next[0]-1: // its message
		if markOf(d) != r.at.Mark {
			r.lost, r.at = true, nil
			return errLost
		}
		return r.begin(r.at, false)
	case first && o.since && offset < r.at.Next[0]: // behind the end of a queue that is new
		r.lost, r.at = true, nil
		return errLost
	case first && o.since:
		gap = offset > r.at.Next[0]
	case !first:
		gap = offset > r.at.Next[0]+maxHole
	}
	if gap {
		r.at = &stream.Position{Next: []int64{offset}}
	}
	if err := r.begin(r.at, gap); err != nil {
		return err
	}
	r.lost = false
	e := &stream.Entry{Offset: offset, Mark: markOf(d)}
	r.at.Pass(e)
	return r.take(e, d)
}

func (r *reading) take(e *stream.Entry, d *amqp.Delivery) error {
	site := r.log.site
	if limit := site.MaxMessageBytes; len(d.Body) > limit {
		site.State.Fail(stream.Failf(stream.Permanent, "a message in queue %s has %d bytes, more than the %d of max_message_bytes", r.log.queue.name, len(d.Body), limit))
		return nil
	}
	site.State.Messages.Add(1)
	site.State.Bytes.Add(uint64(len(d.Body)))
	e.Message = messageOf(d)
	if err := r.to.Take(e); err != nil {
		return &takeError{err}
	}
	return nil
}
