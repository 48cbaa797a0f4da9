package amqp

import (
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// closeWithin bounds how long the end of a connection or channel waits for the broker.
const closeWithin = 3 * time.Second

// A link is an open connection.
type link struct {
	group  *group
	conn   *amqp.Connection
	wire   *wire
	closes chan *amqp.Error
	blocks chan amqp.Blocking
	users  int // with group.mu

	mu         sync.Mutex
	ended      bool
	blocked    bool
	reason     string // of blocked, or of the end
	publishers map[*Output]struct{}
	gauges     map[*Input]struct{}
}

func newLink(g *group, conn *amqp.Connection, w *wire) *link {
	return &link{
		group: g, conn: conn, wire: w,
		closes: conn.NotifyClose(make(chan *amqp.Error, 1)), blocks: conn.NotifyBlocked(make(chan amqp.Blocking)),
		publishers: make(map[*Output]struct{}), gauges: make(map[*Input]struct{}),
	}
}

// has reports whether another connector can use the connection. It is called with the mu
// of the group.
func (l *link) has() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.users < l.group.pool.timing.channels && !l.ended && !l.blocked && !l.conn.IsClosed()
}

// watch runs until the connection has ended.
func (l *link) watch() {
	var measure <-chan time.Time
	if !l.group.key.publishes {
		tick := time.NewTicker(l.group.pool.timing.lag)
		defer tick.Stop()
		measure = tick.C
	}
	blocks := l.blocks
	for {
		select {
		case err := <-l.closes:
			l.end(err)
			return
		case b, ok := <-blocks:
			if !ok {
				blocks = nil
				continue
			}
			l.block(b)
		case <-measure:
			l.measure()
		}
	}
}

// end notes that the connection has ended; err is nil if it was closed in order.
func (l *link) end(err *amqp.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended = true; err != nil {
		l.reason = err.Reason
	}
}

// block tells outputs that the broker takes no messages, or takes them again.
func (l *link) block(b amqp.Blocking) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked, l.reason = b.Active, b.Reason
	for o := range l.publishers {
		o.block(b)
	}
}

// join has an output told of what blocks the connection.
func (l *link) join(o *Output) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publishers[o] = struct{}{}
	if l.blocked {
		o.block(amqp.Blocking{Active: true, Reason: l.reason})
	}
}

func (l *link) leave(o *Output) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.publishers, o)
}

// gauge has the lag of an input measured, until the function that it returns is called.
func (l *link) gauge(in *Input) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gauges[in] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.gauges, in)
	}
}

// measure sets the lag of the inputs. It uses a channel of its own, because a queue that
// does not exist closes the channel.
func (l *link) measure() {
	l.mu.Lock()
	inputs := make([]*Input, 0, len(l.gauges))
	for in := range l.gauges {
		inputs = append(inputs, in)
	}
	l.mu.Unlock()
	if len(inputs) == 0 {
		return
	}
	defer l.within(l.group.pool.timing.answer)()
	var ch *amqp.Channel
	for _, in := range inputs {
		var err error
		if ch == nil || ch.IsClosed() {
			if ch, err = l.conn.Channel(); err != nil {
				return
			}
		}
		in.measure(ch)
	}
	_ = ch.Close() // the connection has ended, or will
}

// within ends the connection when the broker does not answer in time. The caller calls the
// function that it returns after the answer.
func (l *link) within(d time.Duration) (answered func()) {
	timer := time.AfterFunc(d, l.kill)
	return func() { timer.Stop() }
}

// kill ends the connection at once.
func (l *link) kill() { l.wire.Conn.Close() }

// close ends the connection in order, or at once if the broker does not take part.
func (l *link) close() { _ = l.conn.CloseDeadline(time.Now().Add(closeWithin)) }

// shut closes a channel without waiting for the answer. The connection ends if there is
// none in time.
func (l *link) shut(ch *amqp.Channel) {
	l.group.pool.running.Go(func() {
		defer l.within(closeWithin)()
		_ = ch.Close() // closed already, or with its connection
	})
}
