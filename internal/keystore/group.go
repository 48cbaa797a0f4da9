package keystore

import (
	"context"
	"fmt"
	"strings"
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
func (g *Group) ReloadGroup(ctx context.Context) error { return g.tell(ctx, "reload") }

// forgetting begins the message that is followed by the id of an API.
const forgetting = "forget "

// ForgetAnswers tells every gateway that watches to forget the answers that it
// keeps for an API, as ReloadGroup tells them to reload.
func (g *Group) ForgetAnswers(ctx context.Context, api string) error {
	return g.tell(ctx, forgetting+api)
}

func (g *Group) tell(ctx context.Context, message string) error {
	c, ctx, cancel, err := g.v.reach(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := c.Do(ctx, c.B().Publish().Channel(g.channel).Message(message).Build()).Error(); err != nil {
		return fmt.Errorf("%w: telling the group: %w", ErrUnavailable, err)
	}
	return nil
}

// Watch calls reload and forget whenever the group is told to, and when that may
// have been missed because the store was away, until ctx ends: forget then with "",
// which is every API. Neither must block.
func (g *Group) Watch(ctx context.Context, reload func(), forget func(api string)) {
	var deaf atomic.Bool // something may have been missed
	hooked := valkey.WithOnSubscriptionHook(ctx, func(s valkey.PubSubSubscription) {
		if s.Kind == "subscribe" && deaf.Swap(false) {
			reload()
			forget("")
		}
	})
	hear := func(m valkey.PubSubMessage) {
		if api, ok := strings.CutPrefix(m.Message, forgetting); ok {
			forget(api)
			return
		}
		reload()
	}
	for wait := retryFirst; ctx.Err() == nil; wait = min(2*wait, retryMost) {
		if c := g.v.client.Load(); c != nil {
			subscribe := (*c).B().Subscribe().Channel(g.channel).Build()
			_ = (*c).Receive(hooked, subscribe, hear) // it tries again below
		}
		if !deaf.Swap(true) {
			wait = retryFirst // it was heard until now
		}
		if !pause(ctx, wait) {
			return
		}
	}
}
