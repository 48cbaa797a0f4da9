package keystore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"
)

// lookEvery is how often Watch looks whether it would still hear: the library
// connects again only when there is something to send, and a peer that vanished
// says nothing.
const lookEvery = 250 * time.Millisecond

// Watch implements Store, over connections of its own on which the server tells
// every write to a key. It calls with "" whenever a connection is new or one was
// lost, since the server tells only what happens while there is one.
func (v *Valkey) Watch(ctx context.Context, changed func(keyHash string)) error {
	w := &watcher{changed: changed}
	defer w.close()
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		e := &ear{v: v, w: w}
		c, err := valkey.NewClient(v.options.watcher(e.heard, e.dialled))
		if err == nil {
			e.listen(ctx, c)
			w.close() // first: closing connections tells of their loss
			c.Close()
			return ctx.Err()
		}
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

// An ear hears what the server tells.
type ear struct {
	v     *Valkey
	w     *watcher
	fresh atomic.Bool // a connection was made since the last look
}

func (e *ear) dialled() { e.fresh.Store(true) }

// heard gets the names of what was written; nil is everything, or a lost
// connection.
func (e *ear) heard(names []valkey.ValkeyMessage) {
	if names == nil {
		e.w.tell("")
		return
	}
	for _, name := range names {
		if text, err := name.ToString(); err == nil {
			e.w.tell(e.v.hashOf(text))
		}
	}
}

// listen keeps connections to every node up until ctx ends.
func (e *ear) listen(ctx context.Context, c valkey.Client) {
	for deaf := true; ; {
		if !e.reached(ctx, c) {
			if !deaf && ctx.Err() == nil {
				e.w.tell("")
			}
			deaf = true
		} else if made := e.fresh.Swap(false); deaf || made {
			deaf = false
			e.w.tell("")
		}
		if !pause(ctx, lookEvery) {
			return
		}
	}
}

// reached tells whether every node answers. Where a connection was made for
// that, changes are told on it before the answer comes.
func (e *ear) reached(ctx context.Context, c valkey.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, max(e.v.timeout, time.Second))
	defer cancel()
	all := true
	for _, node := range c.Nodes() {
		all = node.Do(ctx, node.B().Ping().Build()).Error() == nil && all
	}
	return all
}
