package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/keystore"
)

// probe is a hash that no key has: hashes are hexadecimal.
const probe = "health check"

// KeyStore is the component of the key store. While the store is away, cached reports
// whether keys can be served from memory; nil: never.
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

// SharedKeys is the component of a key store that gateways share, for its state. While the
// store is away, cached reports whether keys can be served from memory.
func SharedKeys(state func() keystore.BackedState, cached func() bool) Component {
	return Component{Name: "key_store", Kind: "datastore", Check: func(context.Context) (Health, string) {
		switch now := state(); {
		case !now.Away:
			return Pass, ""
		case now.Admin:
			return Warn, "away; keys that are in memory are served, others are asked of the admin"
		case cached():
			return Warn, "away; keys that are in memory are served"
		}
		return Fail, "away, no key is in memory, and there is no answer of an admin"
	}}
}

// Load is the component that warns while calls are shed. It does not fail: taking the
// gateway out of service would move its load to the others.
func Load(shedding func() bool) Component {
	return Component{Name: "load", Kind: "system", Check: func(context.Context) (Health, string) {
		if shedding() {
			return Warn, "more calls come in than can be served; those that are too many get 503"
		}
		return Pass, ""
	}}
}

// CounterStore is the component of the counter store, for the state of a counter.Valkey.
func CounterStore(state func() counter.State) Component {
	return Component{Name: "counter_store", Kind: "datastore", Check: func(context.Context) (Health, string) {
		if state().Away {
			return Warn, "away; calls are admitted or refused as configured for that case"
		}
		return Pass, ""
	}}
}

// ACME is the component of certificates that are obtained by ACME: how many domains have
// none, and of how many others the renewal failed.
func ACME(status func() (without, failing int)) Component {
	return Component{Name: "acme", Kind: "component", Check: func(context.Context) (Health, string) {
		without, failing := status()
		if without+failing > 0 {
			return Warn, fmt.Sprintf("%d domains have no valid certificate, and the renewal of %d others failed; the log says why", without, failing)
		}
		return Pass, ""
	}}
}
