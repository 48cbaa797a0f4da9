package cli

import (
	"context"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/spf13/cobra"
)

func (s *session) options() Options {
	return Options{Quiet: s.Quiet, Stdout: s.Stdout, Stderr: s.Stderr, SkipDrain: s.process.SkipDrain}
}

func (s *session) upCommand() *cobra.Command {
	settings := []shell.Setting{
		{Flag: "data-dir", Key: "data_dir", Usage: "`DIR` for all state"},
		{Flag: "listen", Key: "gateway.listen", Usage: "`ADDRESS` for traffic"},
		{Flag: "admin-listen", Key: "admin.listen", Usage: "`ADDRESS` of the admin"},
	}
	demo := false
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything in one process, with a private PostgreSQL",
		Long: `Runs gateway and admin in one process. The database is a private PostgreSQL that
the process supervises, over a unix socket, unless database.url names another.
Counters stay in the process unless valkey.url names a store to share them.`,
		Example: "  sluice up --demo\n  sluice up --config sluice.yaml",
		Args:    shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options := s.options()
			options.Demo = demo
			return s.serve(cmd, serving{s.process.Commands.Up, config.UpRole, settings, options})
		},
	}
	shell.AddSettings(cmd, settings)
	shell.Must(cmd.MarkFlagDirname("data-dir"))
	cmd.Flags().BoolVar(&demo, "demo", false, "seed an empty database with a sample upstream, APIs, policies and keys")
	return cmd
}

func (s *session) gatewayCommand() *cobra.Command {
	settings := []shell.Setting{
		{Flag: "apps", Key: "gateway.apps_dir", Usage: "`DIR` of API definitions, for a gateway without an admin"},
		{Flag: "policies", Key: "gateway.policies_file", Usage: "`FILE` of policies, with --apps"},
		{Flag: "admin-url", Key: "gateway.admin_url", Usage: "`URL` of the admin that supplies the configuration"},
		{Flag: "group", Key: "gateway.group", Usage: "`NAME` of this gateway's group"},
		{Flag: "listen", Key: "gateway.listen", Usage: "`ADDRESS` for traffic"},
	}
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Run a gateway, configured by an admin or by files",
		Example: `  sluice gateway --apps ./apps --policies policies.json
  SLUICE_GATEWAY_TOKEN_FILE=token SLUICE_VALKEY_URL=redis://valkey:6379 \
    sluice gateway --admin-url https://admin.internal:8081`,
		Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.serve(cmd, serving{s.process.Commands.Gateway, config.GatewayRole, settings, s.options()})
		},
	}
	shell.AddSettings(cmd, settings)
	shell.Must(cmd.MarkFlagDirname("apps"))
	shell.Must(cmd.MarkFlagFilename("policies", "json"))
	cmd.AddCommand(s.gatewayKeyCommand())
	return cmd
}

func (s *session) adminCommand() *cobra.Command {
	settings := []shell.Setting{
		{Flag: "listen", Key: "admin.listen", Usage: "`ADDRESS` of the admin"},
		databaseURL,
	}
	cmd := &cobra.Command{
		Use:     "admin",
		Short:   "Run the admin on a PostgreSQL",
		Example: "  SLUICE_DATABASE_URL=postgres://sluice@db.internal/sluice sluice admin",
		Args:    shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.serve(cmd, serving{s.process.Commands.Admin, config.AdminRole, settings, s.options()})
		},
	}
	shell.AddSettings(cmd, settings)
	return cmd
}

// databaseURL is shared by the commands that use a database. Its usage warns that other
// users of the machine can see arguments.
var databaseURL = shell.Setting{Flag: "database-url", Key: "database.url", Usage: "`URL` of the PostgreSQL; with a password rather set SLUICE_DATABASE_URL"}

// serving is one serving command about to run.
type serving struct {
	run      func(context.Context, *config.Config, Options) error
	role     config.Role
	settings []shell.Setting
	options  Options
}

func (s *session) serve(cmd *cobra.Command, what serving) error {
	cfg, origins, err := s.Load(cmd, what.role, what.settings...)
	if err != nil {
		return err
	}
	what.options.Origins = origins
	return what.run(cmd.Context(), cfg, what.options)
}
