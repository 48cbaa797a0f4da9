package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/doctor"
)

func (s *session) doctorCommand() *cobra.Command {
	t := new(shell.Target)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether everything is as it should be, and say what to do where not",
		Long: `Looks at this machine and at the servers that the configuration names: stores and
their clocks, certificates, limits, disk, ports, gateways and their revision,
GraphQL schemas. Each line is ok, warn or fail, with the remedy.

` + shell.TargetHelp + `

Exit code 1 means that something fails.`,
		Example: "  sluice doctor\n  sluice doctor --config sluice.yaml -o json",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.examine(cmd, t) },
	}
	t.Flags(cmd)
	return cmd
}

func (s *session) examine(cmd *cobra.Command, t *shell.Target) error {
	cfg, _, err := s.Load(cmd, config.AnyRole)
	if err != nil {
		return err
	}
	d := doctor.Doctor{Config: cfg, Now: time.Now, Gateway: t.Gateway}
	if d.Gateway == "" && t.Server == "" {
		d.Gateway = shell.URLOf(cfg.Gateway.Listen)
	}
	admin := *t
	admin.Gateway = "" // both are looked at
	if c, isAdmin, err := s.Client(cmd, &admin); err == nil && isAdmin {
		d.Admin = c
	}
	found := d.Examine(cmd.Context())
	if err := s.printFound(found); err != nil {
		return err
	}
	if doctor.Worst(found) == doctor.Fail {
		return shell.Exit(shell.ExitFailed, "")
	}
	return nil
}

func (s *session) printFound(found []doctor.Finding) error {
	if s.Output != "table" {
		data := shell.Rows{Columns: []string{"state", "check", "detail", "remedy"}}
		for _, f := range found {
			data.Cells = append(data.Cells, []any{string(f.State), f.Check, f.Detail, f.Remedy})
		}
		return s.Print(data)
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%-4s  %s: %s\n", f.State, f.Check, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "      -> %s\n", f.Remedy)
		}
	}
	return s.Write(b.String())
}
