package endpoint

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
)

// A turn is a reading of the log for one client, until that meets the ring.
type turn struct {
	*viewer
	conn  net.Conn
	ctx   context.Context
	idle  *time.Timer // ends ctx
	quiet atomic.Bool // it has
	moved bool        // a message was read
}

var errNoPosition = errors.New("the position of the client has no id")

// catchUp reads the log from the position of the client until the ring has what follows.
// Clients take turns at that. One that has read all there is leaves the log to others, and
// looks again when the ring has changed, and from time to time.
func (v *viewer) catchUp(conn net.Conn) error {
	if v.own == nil {
		if v.own, _ = v.of.log.Position(v.id); v.own == nil {
			return errNoPosition
		}
		v.generation = -1 // it is not known whether the log has it
	}
	v.outside = true
	for pause := v.of.timing.pause; ; pause = min(2*pause, v.of.timing.calm) {
		c, err := v.takeTurn(conn)
		switch {
		case err == errMet:
			return nil
		case v.ctx.Err() != nil:
			return v.ctx.Err()
		case c == nil || c.ctx.Err() == nil:
			return err
		}
		if c.moved {
			pause = v.of.timing.pause
		}
		if !c.quiet.Load() {
			continue
		}
		met, changed := v.of.ring.meet(&v.place)
		if met {
			return nil
		}
		over := time.NewTimer(pause)
		err = v.await(conn, changed, over.C)
		over.Stop()
		if err != nil {
			return err
		}
	}
}

// takeTurn reads the log until the turn is over. It returns errMet if the ring has the rest.
func (v *viewer) takeTurn(conn net.Conn) (*turn, error) {
	if err := v.awaitTurn(conn); err != nil {
		return nil, err
	}
	defer func() { <-v.of.catching }()
	ctx, end := context.WithTimeout(v.ctx, v.of.timing.turn)
	defer end()
	c := &turn{viewer: v, conn: conn, ctx: ctx}
	c.idle = time.AfterFunc(v.of.timing.turn, func() {
		c.quiet.Store(true)
		end()
	})
	c.idle.Stop() // until Begin
	defer c.idle.Stop()
	return c, v.of.log.Read(ctx, v.own, c)
}

// awaitTurn waits until the client may read the log.
func (v *viewer) awaitTurn(conn net.Conn) error {
	for {
		select {
		case v.of.catching <- struct{}{}:
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

// Begin implements stream.Reader.
func (c *turn) Begin(at *stream.Position, gap bool) error {
	c.own, c.generation = clone(at), c.of.ring.current()
	c.id = c.of.log.ID(at)
	if gap {
		if err := c.send(c.conn, c.appendGap(nil)); err != nil {
			return err
		}
	}
	c.idle.Reset(c.of.timing.quiet)
	return c.meet()
}

// Take implements stream.Reader.
func (c *turn) Take(e *stream.Entry) (err error) {
	c.idle.Stop() // processors and the client take the time that they need
	events, err := c.of.eventsOf(c.ctx, e.Message)
	if err != nil {
		return err
	}
	c.own.Pass(e)
	c.id = c.of.log.ID(c.own)
	c.moved = true
	if len(events) > 0 {
		c.of.framed(func(b []byte) []byte {
			b = c.appendEvents(b, events)
			err = c.send(c.conn, b)
			return b
		})
	} else {
		err = c.tellPosition(c.conn)
	}
	if err != nil {
		return err
	}
	c.idle.Reset(c.of.timing.quiet)
	return c.meet()
}

// meet returns errMet if the ring has all that follows.
func (c *turn) meet() error {
	if met, _ := c.of.ring.meet(&c.place); met {
		return errMet
	}
	return nil
}
