// Package app composes what the commands run: an admin, a gateway, or both in one
// process. No other package imports both halves.
package app

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/secret"
)

// common is what every command needs.
type common struct {
	cfg      *config.Config
	log      *slog.Logger
	events   *event.Bus
	gateways func() int // number of gateways that share the counters; nil: unknown

	sealedWith secret.Value // what sessions in the shared store are sealed with; empty: they are not sealed
}

// eventsQueued is how many events may wait for the log.
const eventsQueued = 1024

// newCommon creates the data directory, the log and the event bus.
func newCommon(cfg *config.Config, o Options, dirMode os.FileMode) (common, error) {
	log := newLog(o.Stderr, cfg.Log)
	if err := os.MkdirAll(cfg.DataDir, dirMode); err != nil {
		return common{}, fmt.Errorf("data_dir: %w", err)
	}
	return common{cfg: cfg, log: log, events: event.NewBus(eventsQueued, event.NewLogSink(log))}, nil
}

// Version returns the version of the program, as Go recorded it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// newHasher returns the hasher of keys.
func newHasher(conf config.Keys) (*credential.Hasher, error) {
	algorithm, err := credential.ParseAlgorithm(conf.Hash)
	if err != nil {
		return nil, fmt.Errorf("keys.hash: %w", err)
	}
	h := &credential.Hasher{Algorithm: algorithm, Prefix: conf.Prefix}
	for _, name := range conf.LegacyHashes {
		legacy, err := credential.ParseAlgorithm(name)
		if err != nil {
			return nil, fmt.Errorf("keys.legacy_hashes: %w", err)
		}
		h.Legacy = append(h.Legacy, legacy)
	}
	return h, nil
}

// keyOptions returns how keys are created.
func keyOptions(conf *config.Config, hasher *credential.Hasher) keys.Options {
	return keys.Options{
		Hasher: hasher, MinLength: conf.Keys.MinOwnLength, AllowMaster: conf.Keys.AllowMasterKeys,
		Passwords: password.NewHasher(conf.Passwords.HashesAtOnce, hashesWaiting, hashWait),
	}
}

// Limits of the passwords that wait to be hashed.
const (
	hashesWaiting = 32
	hashWait      = 5 * time.Second
)
