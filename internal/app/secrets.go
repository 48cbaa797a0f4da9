package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/sluicegate/sluice/admin/rotatemaster"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/secret"
)

// Files below data_dir that hold generated master keys.
const (
	masterKeyFile = "master.key"
	nextKeyFile   = "master.key.next" // while a rotation is under way
)

// SecretsRotation are the options of a rotation of the master key.
type SecretsRotation struct {
	DryRun   bool
	Progress func(done, total int) // called after each batch; may be nil
}

// SecretsRotated is the result of a rotation.
type SecretsRotated struct {
	Former, New string // ids of the keys, which do not reveal them
	Kept        string // file that holds the new key; "" when it is configured
	Tables      []rotatemaster.Count
}

// RotateSecrets encrypts all secrets in the database with a new master key: the
// configured one if admin.former_master_key is set, otherwise one that is generated in
// data_dir. After an interruption it can be run again.
func RotateSecrets(ctx context.Context, cfg *config.Config, how SecretsRotation) (*SecretsRotated, error) {
	url, end, err := databaseFor(ctx, cfg)
	if err != nil {
		return nil, err
	}
	done, err := rotateSecrets(ctx, cfg, url, how)
	return done, errors.Join(err, end())
}

// databaseFor returns the address of the database. A private database is started
// meanwhile, which fails while a server uses it.
func databaseFor(ctx context.Context, cfg *config.Config) (url secret.Value, end func() error, err error) {
	u := &allInOne{common: common{cfg: cfg, log: slog.New(slog.DiscardHandler)}}
	if url, err = u.startDatabase(ctx); err != nil {
		return secret.Value{}, nil, err
	}
	return url, u.stopDatabase, nil
}

func rotateSecrets(ctx context.Context, cfg *config.Config, url secret.Value, how SecretsRotation) (*SecretsRotated, error) {
	if _, err := store.Migrate(ctx, url.Reveal()); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	st, err := store.Open(ctx, store.Options{
		URL: url.Reveal(), MaxConns: 2, StatementTimeout: cfg.Database.StatementTimeout, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	former, next, kept, err := rotatedKeys(cfg, how.DryRun)
	if err != nil {
		return nil, err
	}
	r := rotatemaster.Rotation{Store: st, Former: former, New: next, DryRun: how.DryRun, Progress: how.Progress}
	counts, err := r.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("changing the master key: %w", err)
	}
	if kept != "" && !how.DryRun {
		if err := os.Rename(filepath.Join(cfg.DataDir, nextKeyFile), kept); err != nil {
			return nil, fmt.Errorf("keeping the new master key: %w", err)
		}
	}
	return &SecretsRotated{Former: former.ID(), New: next.ID(), Kept: kept, Tables: counts}, nil
}

// rotatedKeys returns the former and the new key. A new one is on disk before anything
// is encrypted with it.
func rotatedKeys(cfg *config.Config, dry bool) (former, next secret.Key, kept string, err error) {
	if !cfg.Admin.MasterKey.Empty() {
		if cfg.Admin.FormerMasterKey.Empty() {
			return former, next, "", errors.New("admin.former_master_key: say which key admin.master_key takes the place of (--former-key-file, or SLUICE_ADMIN_FORMER_MASTER_KEY)")
		}
		if former, err = secret.ParseKey(cfg.Admin.FormerMasterKey); err == nil {
			next, err = secret.ParseKey(cfg.Admin.MasterKey)
		}
		return former, next, "", err
	}
	kept = filepath.Join(cfg.DataDir, masterKeyFile)
	if former, err = keptKey(kept); err != nil {
		return former, next, "", fmt.Errorf("admin.master_key: no key is configured, nor kept on this machine: %w", err)
	}
	if dry {
		if next, err = keptKey(filepath.Join(cfg.DataDir, nextKeyFile)); errors.Is(err, fs.ErrNotExist) {
			next, err = secret.NewKey(), nil
		}
		return former, next, kept, err
	}
	next, _, err = secret.KeepKey(filepath.Join(cfg.DataDir, nextKeyFile))
	return former, next, kept, err
}

// keptKey returns the key in a file, which must exist.
func keptKey(path string) (secret.Key, error) {
	if _, err := os.Stat(path); err != nil {
		return secret.Key{}, err
	}
	key, _, err := secret.KeepKey(path)
	return key, err
}
