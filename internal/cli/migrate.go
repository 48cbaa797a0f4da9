package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/config"
)

func (s *session) migrateCommand() *cobra.Command {
	status := &cobra.Command{
		Use:   "status",
		Short: "List the migrations of the database's schema",
		Args:  noArgs,
		RunE:  s.migrateStatus,
	}
	up := &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that are missing",
		Args:  noArgs,
		RunE:  s.migrateUp,
	}
	for _, cmd := range []*cobra.Command{status, up} {
		addSettings(cmd, []setting{databaseURL})
	}
	cmd := group("migrate", "Look at or bring up to date the schema of the admin's database", status, up)
	cmd.Long = cmd.Short + `.

"up" and "admin" do this themselves when they start; the command is for those who
want it done before.`
	return cmd
}

func (s *session) migrateStatus(cmd *cobra.Command, _ []string) error {
	cfg, _, err := s.load(cmd, config.MigrateRole, databaseURL)
	if err != nil {
		return err
	}
	all, err := s.process.Commands.MigrateStatus(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	return s.print(migrationRows(all))
}

func (s *session) migrateUp(cmd *cobra.Command, _ []string) error {
	cfg, _, err := s.load(cmd, config.MigrateRole, databaseURL)
	if err != nil {
		return err
	}
	applied, err := s.process.Commands.MigrateUp(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	if len(applied) == 0 && s.output == "table" {
		return s.remark("the schema is up to date")
	}
	return s.print(migrationRows(applied))
}

func migrationRows(migrations []Migration) rows {
	data := rows{columns: []string{"version", "name", "applied"}}
	for _, m := range migrations {
		applied := "pending"
		if !m.Applied.IsZero() {
			applied = m.Applied.UTC().Format(time.RFC3339)
		}
		data.cells = append(data.cells, []any{m.Version, m.Name, applied})
	}
	return data
}
