package keystore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/valkey-io/valkey-go"
)

// pingEvery is how often Watch checks its connections: the client reconnects only when
// it has something to send, and does not notice a peer that vanished.
const pingEvery = 250 * time.Millisecond

// Watch implements Store, with connections of its own on which the server reports every
// write to a key. It calls changed with "" whenever a connection is new or was lost, as
// writes before and after are not reported.
func (v *Valkey) Watch(ctx context.Context, changed func(keyHash string)) error {
	w := &watcher{changed: changed}
	defer w.close()
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		e := &listener{v: v, w: w}
		c, err := valkey.NewClient(v.options.watcher(e.invalidated, e.dialled))
		if err == nil {
			e.listen(ctx, c)
			w.close() // first, as closing connections reports their loss
			c.Close()
			return ctx.Err()
		}
		if sleep.For(ctx, wait) != nil {
			return ctx.Err()
		}
	}
}

// A listener receives the server's reports.
type listener struct {
	v     *Valkey
	w     *watcher
	fresh atomic.Bool // a connection was made since the last ping
}

func (e *listener) dialled() { e.fresh.Store(true) }

// invalidated gets the names of keys that were written; nil means all of them, or a
// lost connection.
func (e *listener) invalidated(names []valkey.ValkeyMessage) {
	if names == nil {
		e.w.notify("")
		return
	}
	for _, name := range names {
		if text, err := name.ToString(); err == nil {
			e.w.notify(e.v.hashOf(text))
		}
	}
}

// listen keeps connections to every node up until ctx ends.
func (e *listener) listen(ctx context.Context, c valkey.Client) {
	for missed := true; ; {
		if !e.reached(ctx, c) {
			if !missed && ctx.Err() == nil {
				e.w.notify("")
			}
			missed = true
		} else if made := e.fresh.Swap(false); missed || made {
			missed = false
			e.w.notify("")
		}
		if sleep.For(ctx, pingEvery) != nil {
			return
		}
	}
}

// reached reports whether every node answers. A connection that was made for that
// reports changes from before the answer on.
func (e *listener) reached(ctx context.Context, c valkey.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, max(e.v.timeout, time.Second))
	defer cancel()
	all := true
	for _, node := range c.Nodes() {
		all = node.Do(ctx, node.B().Ping().Build()).Error() == nil && all
	}
	return all
}
