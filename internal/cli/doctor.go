package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/doctor"
)

func (s *session) doctorCommand() *cobra.Command {
	t, bundle := new(shell.Target), ""
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether everything is as it should be, and say what to do where not",
		Long: `Looks at this machine and at the servers that the configuration names: stores and
their clocks, certificates, limits, disk, ports, gateways and their revision,
GraphQL schemas. Each line is ok, warn or fail, with the remedy.

` + shell.TargetHelp + `

With --bundle it also writes an archive for those who are asked for help: what was
found, the settings, definitions and policies, gateways, revisions and metrics.
Secrets, keys, the values of headers, and users, passwords and queries in addresses
are left out; look through it before you give it away.

Exit code 1 means that something fails.`,
		Example: "  sluice doctor\n  sluice doctor --config sluice.yaml -o json\n  sluice doctor --bundle sluice.tar.gz",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.examine(cmd, t, bundle) },
	}
	t.Flags(cmd)
	cmd.Flags().StringVar(&bundle, "bundle", "", "`FILE` to write an archive to, for those who are asked for help")
	return cmd
}

func (s *session) examine(cmd *cobra.Command, t *shell.Target, bundle string) error {
	cfg, origins, err := s.Load(cmd, config.AnyRole)
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
	if bundle != "" {
		settings := doctor.Note{Name: "settings.yaml", Text: []byte(cfg.YAML(origins))}
		build := doctor.Note{Name: "version.txt", Text: []byte(version() + "\n")}
		if err := s.writeBundle(cmd.Context(), &d, bundle, found, settings, build); err != nil {
			return err
		}
	}
	if doctor.Worst(found) == doctor.Fail {
		return shell.Exit(shell.ExitFailed, "")
	}
	return nil
}

// writeBundle writes an archive that only its owner can read, whole or not at all.
func (s *session) writeBundle(ctx context.Context, d *doctor.Doctor, name string, found []doctor.Finding, notes ...doctor.Note) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".bundle.*") // with mode 0600
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, shell.BareCause(err))
	}
	defer os.Remove(file.Name())
	files, err := d.Bundle(ctx, file, found, notes...)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if s.Output != "table" {
		return nil
	}
	return s.Remark("%s in %s; look through them before you give it away", shell.Plural(files, "file"), name)
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
