package cli

import (
	"context"

	"github.com/sluicegate/sluice/internal/app"
	"github.com/sluicegate/sluice/internal/config"
)

// Wired returns the implementation of the commands.
func Wired() Commands {
	return Commands{
		Up: func(ctx context.Context, cfg *config.Config, o Options) error {
			return app.Up(ctx, cfg, app.Options(o))
		},
		Gateway: func(ctx context.Context, cfg *config.Config, o Options) error {
			return app.Gateway(ctx, cfg, app.Options(o))
		},
		Admin: func(ctx context.Context, cfg *config.Config, o Options) error {
			return app.Admin(ctx, cfg, app.Options(o))
		},

		MigrateStatus: func(ctx context.Context, cfg *config.Config) ([]Migration, error) {
			return migrations(app.MigrateStatus(ctx, cfg))
		},
		MigrateUp: func(ctx context.Context, cfg *config.Config) ([]Migration, error) {
			return migrations(app.MigrateUp(ctx, cfg))
		},
		RotateSecrets: func(ctx context.Context, cfg *config.Config, how Rotation) (*Rotated, error) {
			done, err := app.RotateSecrets(ctx, cfg, app.SecretsRotation(how))
			if err != nil {
				return nil, err
			}
			view := &Rotated{Former: done.Former, New: done.New, Kept: done.Kept}
			for _, c := range done.Tables {
				view.Tables = append(view.Tables, RotatedTable(c))
			}
			return view, nil
		},
		CreateBackup: func(ctx context.Context, cfg *config.Config, how Backup) (*BackedUp, error) {
			done, err := app.CreateBackup(ctx, cfg, app.Backup(how))
			return (*BackedUp)(done), err
		},
		Restore: func(ctx context.Context, cfg *config.Config, how Backup) (*BackedUp, error) {
			done, err := app.Restore(ctx, cfg, app.Backup(how))
			return (*BackedUp)(done), err
		},
	}
}

func migrations(from []app.Migration, err error) ([]Migration, error) {
	to := make([]Migration, len(from))
	for i, m := range from {
		to[i] = Migration(m)
	}
	return to, err
}
