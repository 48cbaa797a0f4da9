package keystore

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/valkey-io/valkey-go"
)

// A Group reaches the gateways of a group that share a Valkey store.
type Group struct {
	v       *Valkey
	channel string
}

// Group returns the group of that name.
func (v *Valkey) Group(name string) *Group {
	return &Group{v: v, channel: "sluice:reload:" + name}
}

// ReloadGroup tells every gateway that watches to reload, and does not wait for
// them. It returns ErrUnavailable (wrapped) when they may not have been told.
func (g *Group) ReloadGroup(ctx context.Context) error {
	c, ctx, cancel, err := g.v.reach(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := c.Do(ctx, c.B().Publish().Channel(g.channel).Message("reload").Build()).Error(); err != nil {
		return fmt.Errorf("%w: telling the group: %w", ErrUnavailable, err)
	}
	return nil
}

// Watch calls reload whenever the group is told to, and when that may have been
// missed because the store was away, until ctx ends. reload must not block.
func (g *Group) Watch(ctx context.Context, reload func()) {
	var deaf atomic.Bool // something may have been missed
	hooked := valkey.WithOnSubscriptionHook(ctx, func(s valkey.PubSubSubscription) {
		if s.Kind == "subscribe" && deaf.Swap(false) {
			reload()
		}
	})
	for wait := retryFirst; ctx.Err() == nil; wait = min(2*wait, retryMost) {
		if c := g.v.client.Load(); c != nil {
			subscribe := (*c).B().Subscribe().Channel(g.channel).Build()
			_ = (*c).Receive(hooked, subscribe, func(valkey.PubSubMessage) { reload() }) // it tries again below
		}
		if !deaf.Swap(true) {
			wait = retryFirst // it was heard until now
		}
		if !pause(ctx, wait) {
			return
		}
	}
}
