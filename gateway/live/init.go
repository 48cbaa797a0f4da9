package live

import (
	"bytes"
	"time"
)

// A Refusal says why a connection is not acknowledged. Code is that of the close frame, in
// place of which the older protocol has connection_error.
type Refusal struct {
	Code   int
	Reason string
}

// decide acknowledges the connection, or has Options.Init decide. It needs mu.
func (c *Conn) decide(payload []byte) {
	if c.o.Init == nil {
		c.acknowledge()
		return
	}
	payload = bytes.Clone(payload)
	c.running.Go(func() {
		refused := c.o.Init(payload)
		c.mu.Lock()
		defer c.unlock()
		if refused == nil {
			c.acknowledge()
			return
		}
		c.follow(c.machine.Refuse(refused.Code, refused.Reason))
	})
}

// acknowledge accepts the connection. It needs mu.
func (c *Conn) acknowledge() {
	if c.closing {
		return
	}
	c.init.Stop()
	c.follow(c.machine.Accept())
	c.idleFrom = time.Now()
	c.watchIdle()
}
