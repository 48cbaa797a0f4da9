package keystore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/valkey-io/valkey-go"
)

// A Group sends messages to the gateways of a group, which share a Valkey store.
type Group struct {
	v       *Valkey
	channel string
}

// Group returns the group of that name.
func (v *Valkey) Group(name string) *Group {
	return &Group{v: v, channel: "sluice:reload:" + name}
}

// ReloadGroup makes every gateway that watches reload, and does not wait for them. The
// error wraps ErrUnavailable if the message may not have been sent.
func (g *Group) ReloadGroup(ctx context.Context) error { return g.publish(ctx, "reload") }

// forgetPrefix begins a message that ends with the id of an API.
const forgetPrefix = "forget "

// ForgetAnswers makes every gateway that watches drop the cached responses of an API.
// It returns as ReloadGroup does.
func (g *Group) ForgetAnswers(ctx context.Context, api string) error {
	return g.publish(ctx, forgetPrefix+api)
}

func (g *Group) publish(ctx context.Context, message string) error {
	c, ctx, cancel, err := g.v.reach(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := c.Do(ctx, c.B().Publish().Channel(g.channel).Message(message).Build()).Error(); err != nil {
		return fmt.Errorf("%w: publishing to the group: %w", ErrUnavailable, err)
	}
	return nil
}

// Watch calls reload and forget for every message of the group until ctx ends. When
// messages may have been missed because the store was away, it calls both, forget with
// "" for every API. Neither must block.
func (g *Group) Watch(ctx context.Context, reload func(), forget func(api string)) {
	var missed atomic.Bool // messages may have been missed
	hooked := valkey.WithOnSubscriptionHook(ctx, func(s valkey.PubSubSubscription) {
		if s.Kind == "subscribe" && missed.Swap(false) {
			reload()
			forget("")
		}
	})
	receive := func(m valkey.PubSubMessage) {
		if api, ok := strings.CutPrefix(m.Message, forgetPrefix); ok {
			forget(api)
			return
		}
		reload()
	}
	for wait := retryFirst; ctx.Err() == nil; wait = min(2*wait, retryMost) {
		if c := g.v.client.Load(); c != nil {
			subscribe := (*c).B().Subscribe().Channel(g.channel).Build()
			_ = (*c).Receive(hooked, subscribe, receive) // tried again below
		}
		if !missed.Swap(true) {
			wait = retryFirst // it was connected until now
		}
		if sleep.For(ctx, wait) != nil {
			return
		}
	}
}
