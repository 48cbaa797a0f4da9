package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/config"
)

// A setting is a flag that stands for a key of the configuration.
type setting struct {
	flag, key, usage string
}

// globalSettings are flags that every command has.
var globalSettings = []setting{
	{"log-level", "log.level", ""},
	{"log-format", "log.format", ""},
}

func addSettings(cmd *cobra.Command, settings []setting) {
	for _, one := range settings {
		cmd.Flags().String(one.flag, "", one.usage+" ("+one.key+")")
	}
}

// load reads the configuration for a command with the given settings.
func (s *session) load(cmd *cobra.Command, role config.Role, settings ...setting) (*config.Config, config.Origins, error) {
	src := config.Sources{Files: s.configFiles, Env: s.process.Env, Role: role}
	for _, one := range append(globalSettings[:len(globalSettings):len(globalSettings)], settings...) {
		if !cmd.Flags().Changed(one.flag) {
			continue
		}
		value, err := cmd.Flags().GetString(one.flag)
		if err != nil {
			return nil, nil, fmt.Errorf("reading --%s: %w", one.flag, err)
		}
		src.Flags = append(src.Flags, config.Flag{Name: "--" + one.flag, Key: one.key, Value: value})
	}
	return config.Load(src)
}

func (s *session) options() Options {
	return Options{Quiet: s.quiet, Stdout: s.process.Stdout, Stderr: s.process.Stderr, SkipDrain: s.process.SkipDrain}
}

func (s *session) upCommand() *cobra.Command {
	settings := []setting{
		{"data-dir", "data_dir", "`DIR` for all state"},
		{"listen", "gateway.listen", "`ADDRESS` for traffic"},
		{"admin-listen", "admin.listen", "`ADDRESS` of the admin"},
	}
	demo := false
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything in one process, with a private PostgreSQL",
		Long: `Runs gateway and admin in one process. The database is a private PostgreSQL that
the process supervises, over a unix socket, unless database.url names another.
Counters stay in the process unless valkey.url names a store to share them.`,
		Example: "  sluice up --demo\n  sluice up --config sluice.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options := s.options()
			options.Demo = demo
			return s.serve(cmd, serving{s.process.Commands.Up, config.UpRole, settings, options})
		},
	}
	addSettings(cmd, settings)
	must(cmd.MarkFlagDirname("data-dir"))
	cmd.Flags().BoolVar(&demo, "demo", false, "seed an empty database with a sample upstream, APIs, policies and keys")
	return cmd
}

func (s *session) gatewayCommand() *cobra.Command {
	settings := []setting{
		{"apps", "gateway.apps_dir", "`DIR` of API definitions, for a gateway without an admin"},
		{"policies", "gateway.policies_file", "`FILE` of policies, beside --apps"},
		{"admin-url", "gateway.admin_url", "`URL` of the admin that supplies the configuration"},
		{"group", "gateway.group", "`NAME` of this gateway's group"},
		{"listen", "gateway.listen", "`ADDRESS` for traffic"},
	}
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Run a gateway, configured by an admin or by files",
		Example: `  sluice gateway --apps ./apps --policies policies.json
  SLUICE_GATEWAY_TOKEN_FILE=token SLUICE_VALKEY_URL=redis://valkey:6379 \
    sluice gateway --admin-url https://admin.internal:8081`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.serve(cmd, serving{s.process.Commands.Gateway, config.GatewayRole, settings, s.options()})
		},
	}
	addSettings(cmd, settings)
	must(cmd.MarkFlagDirname("apps"))
	must(cmd.MarkFlagFilename("policies", "json"))
	return cmd
}

func (s *session) adminCommand() *cobra.Command {
	settings := []setting{
		{"listen", "admin.listen", "`ADDRESS` of the admin"},
		databaseURL,
	}
	cmd := &cobra.Command{
		Use:     "admin",
		Short:   "Run the admin on a PostgreSQL",
		Example: "  SLUICE_DATABASE_URL=postgres://sluice@db.internal/sluice sluice admin",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.serve(cmd, serving{s.process.Commands.Admin, config.AdminRole, settings, s.options()})
		},
	}
	addSettings(cmd, settings)
	return cmd
}

// databaseURL is shared by the commands that work on a database. Other users
// of a machine see arguments, hence its remark.
var databaseURL = setting{"database-url", "database.url", "`URL` of the PostgreSQL; with a password rather set SLUICE_DATABASE_URL"}

// serving is one serving command about to run.
type serving struct {
	run      func(context.Context, *config.Config, Options) error
	role     config.Role
	settings []setting
	options  Options
}

func (s *session) serve(cmd *cobra.Command, what serving) error {
	cfg, _, err := s.load(cmd, what.role, what.settings...)
	if err != nil {
		return err
	}
	return what.run(cmd.Context(), cfg, what.options)
}
