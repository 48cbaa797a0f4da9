package cli

import (
	"fmt"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/spf13/cobra"
)

// roles are the commands whose required settings "config check --for" can check.
var roles = map[string]config.Role{
	"":        config.AnyRole,
	"up":      config.UpRole,
	"gateway": config.GatewayRole,
	"admin":   config.AdminRole,
	"migrate": config.MigrateRole,
}

func (s *session) configCommand() *cobra.Command {
	printing := &cobra.Command{
		Use:   "print",
		Short: "Print the effective configuration and where each value comes from",
		Long: `Prints every setting with its value and its origin: a line of a file, a variable
of the environment, a flag, or the default. Secrets are ***. With -o yaml it is a
configuration file.`,
		Args: shell.NoArgs,
		RunE: s.printConfig,
	}
	role := ""
	check := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration without starting anything",
		Args:  shell.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.checkConfig(cmd, role) },
	}
	check.Flags().StringVar(&role, "for", "", "also demand what this `COMMAND` cannot do without: up, gateway, admin or migrate")
	shell.Must(check.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"up", "gateway", "admin", "migrate"}, cobra.ShellCompDirectiveNoFileComp)))
	reference := &cobra.Command{
		Use:   "reference",
		Short: "Print the documentation of every setting as Markdown",
		Args:  shell.NoArgs,
		RunE:  s.printReference,
	}
	own := []*cobra.Command{printing, check, reference}
	return shell.Group("config", "Print or check settings; list, compare and take back changes", append(own, s.revisionCommands()...)...)
}

func (s *session) printConfig(cmd *cobra.Command, _ []string) error {
	cfg, origins, err := s.Load(cmd, config.AnyRole)
	if err != nil {
		return err
	}
	if s.Output == "yaml" {
		return s.Write(cfg.YAML(origins))
	}
	data := shell.Rows{Columns: []string{"key", "value", "origin"}}
	for _, one := range cfg.Settings(origins) {
		data.Cells = append(data.Cells, []any{one.Key, one.Value, one.Origin})
	}
	return s.Print(data)
}

func (s *session) checkConfig(cmd *cobra.Command, name string) error {
	role, ok := roles[name]
	if !ok {
		return &shell.UsageError{Cause: fmt.Errorf("--for %q is unknown; want up, gateway, admin or migrate", name), Command: cmd.CommandPath()}
	}
	if _, _, err := s.Load(cmd, role); err != nil {
		return err
	}
	return s.Remark("the configuration is fine")
}

func (s *session) printReference(*cobra.Command, []string) error {
	text, err := config.Reference()
	if err != nil {
		return err
	}
	return s.Write(text)
}
