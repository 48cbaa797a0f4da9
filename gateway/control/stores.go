package control

import (
	"context"
	"errors"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/keystore"
)

// probe is a hash that no key has: hashes are hexadecimal.
const probe = "health check"

// KeyStore is the component of the key store. While that is away, cached tells
// whether the gateway can serve keys from memory; nil is never.
func KeyStore(store keystore.Store, cached func() bool) Component {
	return Component{Name: "key_store", Kind: "datastore", Check: func(ctx context.Context) (Health, string) {
		_, err := store.Get(ctx, probe)
		switch {
		case err == nil || errors.Is(err, keystore.ErrNotFound):
			return Pass, ""
		case cached != nil && cached():
			return Warn, "away; keys that are in memory are served"
		}
		return Fail, "away, and no key is in memory"
	}}
}

// Load is the component of what comes in: calls are shed while that is more than
// can be served. The gateway is well all the same, and must not be taken out of
// service: the others would have its load too.
func Load(shedding func() bool) Component {
	return Component{Name: "load", Kind: "system", Check: func(context.Context) (Health, string) {
		if shedding() {
			return Warn, "more calls come in than can be served; those that are too many get 503"
		}
		return Pass, ""
	}}
}

// CounterStore is the component of the counter store, whose state is that of a
// counter.Valkey.
func CounterStore(state func() counter.State) Component {
	return Component{Name: "counter_store", Kind: "datastore", Check: func(context.Context) (Health, string) {
		if state().Away {
			return Warn, "away; calls are admitted or refused as configured for that case"
		}
		return Pass, ""
	}}
}
