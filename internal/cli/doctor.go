package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/doctor"
)

func (s *session) doctorCommand() *cobra.Command {
	t := new(target)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether everything is as it should be, and say what to do where not",
		Long: `Looks at this machine and at the servers that the configuration names: stores and
their clocks, certificates, limits, disk, ports, gateways and their revision,
GraphQL schemas. Each line is ok, warn or fail, with the remedy.

` + targetHelp + `

Exit code 1 means that something fails.`,
		Example: "  sluice doctor\n  sluice doctor --config sluice.yaml -o json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.examine(cmd, t) },
	}
	t.flags(cmd)
	return cmd
}

func (s *session) examine(cmd *cobra.Command, t *target) error {
	cfg, _, err := s.load(cmd, config.AnyRole)
	if err != nil {
		return err
	}
	d := doctor.Doctor{Config: cfg, Now: time.Now, Gateway: t.gateway}
	if d.Gateway == "" && t.server == "" {
		d.Gateway = urlOf(cfg.Gateway.Listen)
	}
	admin := *t
	admin.gateway = "" // both are looked at
	if c, isAdmin, err := s.client(cmd, &admin); err == nil && isAdmin {
		d.Admin = c
	}
	found := d.Examine(cmd.Context())
	if err := s.printFound(found); err != nil {
		return err
	}
	if doctor.Worst(found) == doctor.Fail {
		return &exitError{ExitFailed, ""}
	}
	return nil
}

func (s *session) printFound(found []doctor.Finding) error {
	if s.output != "table" {
		data := rows{columns: []string{"state", "check", "detail", "remedy"}}
		for _, f := range found {
			data.cells = append(data.cells, []any{string(f.State), f.Check, f.Detail, f.Remedy})
		}
		return s.print(data)
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%-4s  %s: %s\n", f.State, f.Check, f.Detail)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "      -> %s\n", f.Remedy)
		}
	}
	return s.write(b.String())
}
