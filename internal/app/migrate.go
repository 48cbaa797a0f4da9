package app

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/config"
)

// Migration is one step of the database's schema.
type Migration struct {
	Version int64
	Name    string
	Applied time.Time // zero: not yet
}

// MigrateStatus lists the migrations of the configured database, oldest first.
func MigrateStatus(ctx context.Context, cfg *config.Config) ([]Migration, error) {
	found, err := store.Migrations(ctx, cfg.Database.URL.Reveal())
	list := make([]Migration, len(found))
	for i, m := range found {
		list[i] = Migration(m)
	}
	return list, err
}

// MigrateUp applies the missing migrations and returns them.
func MigrateUp(ctx context.Context, cfg *config.Config) ([]Migration, error) {
	before, err := MigrateStatus(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := store.Migrate(ctx, cfg.Database.URL.Reveal()); err != nil {
		return nil, err
	}
	after, err := MigrateStatus(ctx, cfg)
	var applied []Migration
	for i, m := range after {
		if i < len(before) && before[i].Applied.IsZero() && !m.Applied.IsZero() {
			applied = append(applied, m)
		}
	}
	return applied, err
}
