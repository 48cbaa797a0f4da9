package live

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Leave ends all connections, one after the other within some time, so that clients do not
// connect again all at once. When ctx ends it ends the rest. Connections that are added
// later are ended at once. The channel that it returns is closed when all have been ended.
func (r *Registry) Leave(ctx context.Context, within time.Duration, reason string) <-chan struct{} {
	r.mu.Lock()
	r.leaving = reason
	all := slices.Collect(maps.Values(r.all))
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		begin := time.Now()
		for i, m := range all {
			turn := within * time.Duration(i) / time.Duration(len(all))
			if m.conn.isOpen() {
				await(ctx, time.Until(begin.Add(turn)))
				m.conn.Close(CloseRestart, reason)
			}
		}
	}()
	return done
}

// Size returns how many connections there are.
func (r *Registry) Size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// await returns after some time, or when ctx ends.
func await(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// isOpen reports whether no close frame has been sent.
func (c *Conn) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closing
}
