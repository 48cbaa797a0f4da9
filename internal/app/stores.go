package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/metrics"
)

// stores holds keys and counters, in this process or shared.
type stores struct {
	keys     keystore.Store
	counters counter.Counter
	naming   counter.Naming

	saver        *counter.Saver   // nil: counters are shared
	sharedKeys   *keystore.Valkey // nil: keys are in this process
	sharedCounts *counter.Valkey  // nil: counters are in this process
	keyFile      *keystore.File   // nil: keys are not kept in a file

	backed *keystore.Backed            // keys, if they are shared; else nil
	seal   *keystore.Seal              // of the sessions in the shared store; nil: they are not sealed
	asked  atomic.Pointer[source.Keys] // the admin that is asked for keys; nil at first, and without an admin
}

// ask asks the admin for a key.
func (s *stores) ask(ctx context.Context, keyHash string) (*definition.Session, error) {
	if admin := s.asked.Load(); admin != nil {
		return admin.Session(ctx, keyHash)
	}
	return nil, fmt.Errorf("%w: the admin is not connected yet", keystore.ErrUnavailable)
}

// metrics returns the metrics of the shared stores.
func (s *stores) metrics() prometheus.Collector {
	return metrics.Stores(func() []metrics.Store { return []metrics.Store{s.sharedCounts.Health(), s.backed.Health()} })
}

// keyHome is where the keys of a process without a shared store are.
type keyHome uint8

const (
	keysFromAdmin keyHome = iota // the admin in this process fills memory
	keysInFile                   // a journal in data_dir is all there is
	keysInValkey                 // there must be a shared store, which an admin fills
	keysToValkey                 // the same, in the admin itself
)

var errNoValkey = errors.New("valkey.url: a gateway with an admin finds keys there; set it to the store that the admin writes to, such as redis://valkey:6379")

// openStores opens the configured stores.
func openStores(ctx context.Context, base common, home keyHome) (*stores, error) {
	cfg, log := base.cfg, base.log
	target, err := cfg.Valkey.Target()
	if err != nil {
		return nil, err
	}
	if len(target.Addresses) > 0 {
		return openShared(ctx, base, target, home)
	}
	if home == keysInValkey || home == keysToValkey {
		return nil, errNoValkey
	}
	s := &stores{}
	memory := counter.NewMemory(nil)
	if s.saver, err = counter.OpenSaver(memory, counter.SaverOptions{Dir: filepath.Join(cfg.DataDir, "counters"), Log: log}); err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	s.counters = savedCounters{memory, s.saver}
	if home == keysFromAdmin {
		s.keys = keystore.NewMemory()
		return s, nil
	}
	if s.keyFile, err = keystore.OpenFile(filepath.Join(cfg.DataDir, "keys.journal"), log); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	s.keys = s.keyFile
	return s, nil
}

// openShared opens the stores that gateways share. If an admin fills them, a missing key
// may still be on its way.
func openShared(ctx context.Context, base common, target config.ValkeyTarget, home keyHome) (*stores, error) {
	cfg := base.cfg
	if target.DB != 0 {
		return nil, fmt.Errorf("valkey.url: database %d: only database 0 can be used", target.DB)
	}
	secure, err := valkeyTLS(cfg, target)
	if err != nil {
		return nil, err
	}
	outage, err := counter.ParsePolicy(cfg.Quota.OnStoreError)
	if err != nil {
		return nil, fmt.Errorf("quota.on_store_error: %w", err)
	}
	addresses := target.Addresses
	if target.Unix {
		addresses = []string{"unix:" + addresses[0]}
	}
	s := &stores{naming: counter.Naming{Tagged: cfg.Valkey.Cluster}}
	if !base.sealedWith.Empty() {
		if s.seal, err = keystore.NewSeal(base.sealedWith.Reveal()); err != nil {
			return nil, err
		}
		if former := cfg.Gateway.FormerToken; !former.Empty() {
			before, err := keystore.NewSeal(former.Reveal())
			if err != nil {
				return nil, err
			}
			s.seal.Accept(before.Keys())
		}
	}
	s.sharedCounts, err = counter.OpenValkey(ctx, counter.ValkeyOptions{
		Addresses: addresses, Username: target.Username, Password: target.Password.Reveal(),
		SentinelMaster: cfg.Valkey.SentinelMaster, SentinelUsername: cfg.Valkey.SentinelUsername,
		SentinelPassword: cfg.Valkey.SentinelPassword.Reveal(),
		Cluster:          cfg.Valkey.Cluster, TLS: secure, Timeout: cfg.Valkey.Timeout, Outage: outage,
		Gateways: base.gateways, Changed: func(now counter.State) { base.events.Raise(storeEvent(now)) },
	})
	if err != nil {
		return nil, fmt.Errorf("counter store: %w", err)
	}
	s.counters = s.sharedCounts
	if err := s.openSharedKeys(base, addresses, secure, home); err != nil {
		s.sharedCounts.Close()
		return nil, err
	}
	return s, nil
}

// openSharedKeys opens the store of keys that gateways share.
func (s *stores) openSharedKeys(base common, addresses []string, secure *tls.Config, home keyHome) error {
	cfg := base.cfg
	target, err := cfg.Valkey.Target()
	if err != nil {
		return err
	}
	s.sharedKeys, err = keystore.OpenValkey(keystore.ValkeyOptions{
		Addresses: addresses, Username: target.Username, Password: target.Password.Reveal(),
		SentinelMaster: cfg.Valkey.SentinelMaster, SentinelUsername: cfg.Valkey.SentinelUsername,
		SentinelPassword: cfg.Valkey.SentinelPassword.Reveal(),
		Cluster:          cfg.Valkey.Cluster, TLS: secure, Timeout: cfg.Valkey.Timeout, Fed: home != keysInFile, Seal: s.seal,
	})
	if err != nil {
		return err
	}
	backing := keystore.BackedOptions{Store: s.sharedKeys, Log: base.log}
	if home == keysInValkey || home == keysFromAdmin {
		backing.Ask = s.ask
	}
	s.backed = keystore.NewBacked(backing)
	s.keys = s.backed
	return nil
}

// savedCounters count in memory; a reset is on the disk when it returns.
type savedCounters struct {
	*counter.Memory
	saver *counter.Saver
}

// Reset resets counters.
func (c savedCounters) Reset(ctx context.Context, keys ...string) error {
	return c.saver.Reset(ctx, keys...)
}

func storeEvent(now counter.State) event.Event {
	if now.Away {
		return event.Event{Name: event.CounterStoreDown, Detail: fmt.Sprint(now.Cause)}
	}
	return event.Event{Name: event.CounterStoreUp}
}

// valkeyTLS returns nil for plain connections.
func valkeyTLS(cfg *config.Config, target config.ValkeyTarget) (*tls.Config, error) {
	if !target.TLS {
		return nil, nil
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.Valkey.CAFile == "" {
		return secure, nil
	}
	pem, err := os.ReadFile(cfg.Valkey.CAFile)
	if err != nil {
		return nil, fmt.Errorf("valkey.ca_file: %w", err)
	}
	secure.RootCAs = x509.NewCertPool()
	if !secure.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("valkey.ca_file: %s holds no certificate in PEM form", cfg.Valkey.CAFile)
	}
	return secure, nil
}

// describe returns a line about the stores for the banner.
func (s *stores) describe(cfg *config.Config) string {
	if s.sharedCounts == nil {
		return "in process        limits: one process; saved every second"
	}
	target, err := cfg.Valkey.Target()
	if err != nil {
		return "external"
	}
	return "external          " + strings.Join(target.Addresses, ", ")
}

// close ends the connections. The saver ends with its Run.
func (s *stores) close() error {
	if s.sharedCounts != nil {
		s.sharedCounts.Close()
	}
	if s.sharedKeys != nil {
		s.sharedKeys.Close()
	}
	if s.keyFile != nil {
		return s.keyFile.Close()
	}
	return nil
}
