package endpoint

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
)

// A viewer is a client of a Replay. A goroutine writes to it, and waits while it does not
// read; another one waits for the end of the connection.
type viewer struct {
	of     *Replay
	ctx    context.Context // ends with the connection, and with the output
	cancel context.CancelFunc
	conn   atomic.Pointer[net.Conn] // nil: it is not served yet
	kick   chan struct{}            // a heartbeat may be due

	// Of the goroutine that writes.
	place
	told  string    // the last id that was sent
	wrote time.Time // something
}

// serve serves the connection until it ends.
func (v *viewer) serve(conn net.Conn, received []byte) {
	defer v.of.leave(v)
	defer v.cancel()
	if conn == nil {
		return
	}
	v.conn.Store(&conn)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.write(conn)
		hangUp(conn)
	}()
	stop := context.AfterFunc(v.ctx, func() { // what is written now may take as long as it may
		if v.of.serving.Err() == nil {
			hangUp(conn)
		}
	})
	defer stop()
	defer v.of.wheel.add(v)()
	waitForEnd(conn, len(received))
	v.cancel()
	<-ended
}

// waitForEnd returns when a connection has ended whose client only listens.
func waitForEnd(conn net.Conn, stray int) {
	var sink [64]byte
	for stray <= maxStray {
		n, err := conn.Read(sink[:])
		if err != nil {
			return
		}
		stray += n
	}
}

// abandon ends the connection at once.
func (v *viewer) abandon() {
	v.cancel()
	if conn := v.conn.Load(); conn != nil {
		hangUp(*conn)
	}
}

// beat implements beater.
func (v *viewer) beat() {
	select {
	case v.kick <- struct{}{}:
	default: // one is due already
	}
}

// write writes events until the connection or the output ends.
func (v *viewer) write(conn net.Conn) {
	err := v.hello(conn)
	for err == nil {
		if err = v.follow(conn); err == errBehind {
			err = v.catchUp(conn)
		}
	}
	if v.of.serving.Err() != nil && errors.Is(err, context.Canceled) {
		wait := time.Second + rand.N(reconnectWithin-time.Second)
		_ = v.send(conn, v.of.format.last(wait)) // it ends in any case
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		v.of.site.State.Dropped.Add(1)
	}
}

// hello sends what comes first, with the position from which the client gets events.
func (v *viewer) hello(conn net.Conn) error {
	first := v.of.format.first()
	if v.id != "" {
		first = append(first, "id: "+v.id+"\n\n"...)
	}
	v.told = v.id
	return v.send(conn, first)
}

// send writes to the client, each piece in time.
func (v *viewer) send(conn net.Conn, p []byte) error {
	const piece = 64 << 10
	for len(p) > 0 {
		_ = conn.SetWriteDeadline(time.Now().Add(v.of.conf.WriteTimeout)) // a connection without one fails to be written to
		n, err := conn.Write(p[:min(len(p), piece)])
		if err != nil {
			return err
		}
		p = p[n:]
	}
	v.wrote = time.Now()
	return nil
}

// tellPosition sends a heartbeat when the connection is idle: with the position, if that has
// moved without an event, so that a client whose messages are filtered does not fall behind.
func (v *viewer) tellPosition(conn net.Conn) error {
	if time.Since(v.wrote) <= v.of.conf.Heartbeat/4 {
		return nil
	}
	beat := v.of.format.beat()
	if v.id != "" && v.id != v.told {
		beat = []byte("id: " + v.id + "\n\n")
		v.told = v.id
	}
	return v.send(conn, beat)
}

// follow writes the events of the ring. It ends with errBehind, or the error of the
// connection or of its context.
func (v *viewer) follow(conn net.Conn) error {
	for {
		entries, changed, err := v.of.ring.read(&v.place)
		switch {
		case v.ctx.Err() != nil:
			return v.ctx.Err()
		case err != nil:
			return err
		case len(entries) > 0:
			if err := v.pass(conn, entries); err != nil {
				return err
			}
			continue
		}
		if err := v.await(conn, changed, nil); err != nil {
			return err
		}
	}
}

// await waits until something has changed or the time is over, with heartbeats.
func (v *viewer) await(conn net.Conn, changed <-chan struct{}, over <-chan time.Time) error {
	for {
		select {
		case <-changed:
			return nil
		case <-over:
			return nil
		case <-v.kick:
			if err := v.tellPosition(conn); err != nil {
				return err
			}
		case <-v.ctx.Done():
			return v.ctx.Err()
		}
	}
}

// pass writes entries of the ring.
func (v *viewer) pass(conn net.Conn, entries []entry) (err error) {
	v.of.framed(func(b []byte) []byte {
		for i := range entries {
			k := &entries[i]
			v.number++
			switch {
			case k.gap:
				v.own, v.id = nil, k.id
				b = v.appendGap(b)
				continue
			case v.own == nil:
				v.id = k.id
			case k.offset < nextOf(v.own, k.partition): // the client has it
				continue
			default:
				v.own.Pass(&stream.Entry{Partition: k.partition, Offset: k.offset, Mark: k.mark})
				v.id = v.of.log.ID(v.own)
			}
			b = v.appendEvents(b, k.events)
			if len(b) < maxBuffer {
				continue
			}
			if err = v.send(conn, b); err != nil {
				return b
			}
			b = b[:0]
		}
		if err = v.send(conn, b); err != nil {
			return b
		}
		return b
	})
	return err
}

// appendEvents appends the events of a message. The last one has the id: a client that is
// cut off before it gets all of them again.
func (v *viewer) appendEvents(b []byte, events []event) []byte {
	for i := range events {
		id := ""
		if i == len(events)-1 {
			id = v.id
			v.told = id
		}
		v.of.site.State.Messages.Add(1)
		v.of.site.State.Bytes.Add(uint64(len(events[i].body)))
		b = v.of.format.appendEvent(b, &events[i], id)
	}
	return b
}

// appendGap appends the event that says that messages are missing. Its data is the position
// at which the stream goes on.
func (v *viewer) appendGap(b []byte) []byte {
	v.told = v.id
	return v.of.format.appendEvent(b, &event{name: "gap", body: []byte(v.id)}, v.id)
}
