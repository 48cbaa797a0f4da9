package live

import "time"

// Limits are the bounds of a client's connection. All but Idle are required.
type Limits struct {
	Operations  int           // active at once
	MaxMessage  int64         // of a client, bytes
	MaxQueued   int           // bytes of messages that wait for a slow client; more end the connection
	MaxResponse int           // of an upstream to a query or mutation, bytes
	InitTimeout time.Duration // for connection_init
	Heartbeat   time.Duration // between two of them; a client that answers no ping for two and a half is gone
	WriteWithin time.Duration // for one write to the client
	Idle        time.Duration // without operations; then the connection is closed. 0: never
}

// watchIdle closes a connection that has had no operation for Limits.Idle. It is called
// for the first time when the connection is acknowledged. It needs mu.
func (c *Conn) watchIdle() {
	if c.o.Idle <= 0 || c.closing {
		return
	}
	if len(c.active) > 0 {
		c.idleFrom = time.Now()
	}
	left := c.o.Idle - time.Since(c.idleFrom)
	if left <= 0 {
		c.end(CloseNormal, reasonIdle)
		return
	}
	c.init.Reset(left)
}
