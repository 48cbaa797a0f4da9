package cli

import (
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/spf13/cobra"
)

func (s *session) migrateCommand() *cobra.Command {
	status := &cobra.Command{
		Use:   "status",
		Short: "List the migrations of the database's schema",
		Args:  shell.NoArgs,
		RunE:  s.migrateStatus,
	}
	up := &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that are missing",
		Args:  shell.NoArgs,
		RunE:  s.migrateUp,
	}
	for _, cmd := range []*cobra.Command{status, up} {
		shell.AddSettings(cmd, []shell.Setting{databaseURL})
	}
	cmd := shell.Group("migrate", "Look at or bring up to date the schema of the admin's database", status, up)
	cmd.Long = cmd.Short + `.

"up" and "admin" do this themselves when they start; the command is for those who
want it done before.`
	return cmd
}

func (s *session) migrateStatus(cmd *cobra.Command, _ []string) error {
	cfg, _, err := s.Load(cmd, config.MigrateRole, databaseURL)
	if err != nil {
		return err
	}
	all, err := s.process.Commands.MigrateStatus(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	return s.Print(migrationRows(all))
}

func (s *session) migrateUp(cmd *cobra.Command, _ []string) error {
	cfg, _, err := s.Load(cmd, config.MigrateRole, databaseURL)
	if err != nil {
		return err
	}
	applied, err := s.process.Commands.MigrateUp(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	if len(applied) == 0 && s.Output == "table" {
		return s.Remark("the schema is up to date")
	}
	return s.Print(migrationRows(applied))
}

func migrationRows(migrations []Migration) shell.Rows {
	data := shell.Rows{Columns: []string{"version", "name", "applied"}}
	for _, m := range migrations {
		applied := "pending"
		if !m.Applied.IsZero() {
			applied = m.Applied.UTC().Format(time.RFC3339)
		}
		data.Cells = append(data.Cells, []any{m.Version, m.Name, applied})
	}
	return data
}
