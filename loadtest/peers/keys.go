package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// makers is how many keys are written at a time: they reach the disk together.
const makers = 256

// A place is where a gateway looks for keys: in its folder, or in the shared
// store when that has an address.
type place struct{ dir, shared string }

// makeKeys writes n keys that carry policies, one each, in turn. Writing them
// through the gateway would take long for a million.
func makeKeys(ctx context.Context, at place, policies []string, n int) ([]string, error) {
	if n == 0 {
		return nil, nil
	}
	store, closeStore, err := openKeys(at)
	if err != nil {
		return nil, fmt.Errorf("making keys: %w", err)
	}
	hasher := credential.Hasher{Algorithm: credential.SHA256, Prefix: credential.DefaultPrefix}
	keys, errs := make([]string, n), make([]error, makers+1)
	var running sync.WaitGroup
	for m := range makers {
		running.Go(func() {
			for i := m; i < n && errs[m] == nil; i += makers {
				keys[i] = credential.Generate(credential.DefaultPrefix)
				errs[m] = store.Put(ctx, hasher.Hash(keys[i]), &definition.Session{OrgID: "loadtest", ApplyPolicies: policies[i%len(policies):][:1]})
			}
		})
	}
	running.Wait()
	errs[makers] = closeStore()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("making keys: %w", err)
		}
	}
	return keys, nil
}

func openKeys(at place) (keystore.Store, func() error, error) {
	if at.shared != "" {
		s, err := keystore.OpenValkey(keystore.ValkeyOptions{Addresses: []string{at.shared}, Timeout: storePatience})
		if err != nil {
			return nil, nil, err
		}
		return s, func() error { s.Close(); return nil }, nil
	}
	if err := os.MkdirAll(at.dir, 0o700); err != nil {
		return nil, nil, err
	}
	s, err := keystore.OpenFile(filepath.Join(at.dir, "keys.journal"), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// keyed returns requests that show keys in turn, in an order that caches of the
// processor cannot guess.
func (b *bench) keyed(addr string, keys []string) func(dst []byte, n uint64) []byte {
	const stride = 7919
	head := b.head(addr) + "Authorization: "
	return func(dst []byte, n uint64) []byte {
		dst = append(dst, head...)
		dst = append(dst, keys[n*stride%uint64(len(keys))]...)
		return append(dst, "\r\n\r\n"...)
	}
}
