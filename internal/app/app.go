// Package app builds what the commands run: an admin, a gateway, or everything in
// one process. It is the only room that knows both halves.
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
)

// common is what every command starts from.
type common struct {
	cfg      *config.Config
	log      *slog.Logger
	events   *event.Bus
	gateways func() int // how many share the counters; nil: not known
}

// eventsQueued is how many events may wait for the log.
const eventsQueued = 1024

// newCommon makes the data directory, log and events of a process.
func newCommon(cfg *config.Config, o Options, dirMode os.FileMode) (common, error) {
	log := newLog(o.Stderr, cfg.Log)
	if err := os.MkdirAll(cfg.DataDir, dirMode); err != nil {
		return common{}, fmt.Errorf("data_dir: %w", err)
	}
	return common{cfg: cfg, log: log, events: event.NewBus(eventsQueued, event.NewLogSink(log))}, nil
}

// Version is the program's version, as Go recorded it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// newHasher makes what finds the identity of a key.
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

// keyOptions is how keys are made.
func keyOptions(conf *config.Config, hasher *credential.Hasher) keys.Options {
	return keys.Options{
		Hasher: hasher, MinLength: conf.Keys.MinLength, AllowMaster: conf.Keys.AllowMasterKeys,
		Passwords: password.NewHasher(conf.Passwords.HashesAtOnce, hashesWaiting, hashWait),
	}
}

// How many passwords of users that are made may wait to be hashed, and for how
// long.
const (
	hashesWaiting = 32
	hashWait      = 5 * time.Second
)
