package cli

import (
	"context"

	"github.com/sluicegate/sluice/internal/app"
	"github.com/sluicegate/sluice/internal/cli/secrets"
	"github.com/sluicegate/sluice/internal/config"
)

// Wired returns the commands as this program has them.
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
		RotateSecrets: func(ctx context.Context, cfg *config.Config, how secrets.Rotation) (*secrets.Rotated, error) {
			done, err := app.RotateSecrets(ctx, cfg, app.SecretsRotation(how))
			if err != nil {
				return nil, err
			}
			told := &secrets.Rotated{Former: done.Former, New: done.New, Kept: done.Kept}
			for _, c := range done.Tables {
				told.Tables = append(told.Tables, secrets.Count(c))
			}
			return told, nil
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
