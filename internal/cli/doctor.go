package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/doctor"
	"github.com/spf13/cobra"
)

func (s *session) doctorCommand() *cobra.Command {
	t, bundle, live, ready := new(shell.Target), "", false, false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and the configured servers, and suggest remedies",
		Long: `Checks this machine and the servers in the configuration: stores and
their clocks, certificates, limits, disk, ports, gateways and their revision,
GraphQL schemas. Each line is ok, warn or fail, with the remedy.

` + shell.TargetHelp + `

With --bundle it also writes an archive for support requests: the
findings, settings, definitions and policies, gateways, revisions and metrics.
Secrets, keys, the values of headers, and users, passwords and queries in addresses
are left out; review it before you share it.

With --live it only asks the server of this machine whether it lives, as the health
check of a container does: the gateway where gateway.admin_url or gateway.apps_dir is
set, else the admin. With --ready it asks whether that is ready; an admin with
admin.tls.client_ca says so with a client certificate alone.

Exit code 1 means that a check failed.`,
		Example: "  sluice doctor\n  sluice doctor --config sluice.yaml -o json\n  sluice doctor --bundle sluice.tar.gz\n  sluice doctor --live",
		Args:    shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case live && ready:
				return &shell.UsageError{Cause: errors.New("--live and --ready are both given; keep one"), Command: cmd.CommandPath()}
			case live:
				return s.probe(cmd, t, livePath)
			case ready:
				return s.probe(cmd, t, readyPath)
			}
			return s.examine(cmd, t, bundle)
		},
	}
	t.Flags(cmd)
	cmd.Flags().BoolVar(&live, "live", false, "only ask the server of this machine whether it lives")
	cmd.Flags().BoolVar(&ready, "ready", false, "only ask the server of this machine whether it is ready")
	cmd.Flags().StringVar(&bundle, "bundle", "", "`FILE` to write an archive for support requests to")
	return cmd
}

func (s *session) examine(cmd *cobra.Command, t *shell.Target, bundle string) error {
	cfg, origins, err := s.Load(cmd, config.AnyRole)
	if err != nil {
		return err
	}
	d := doctor.Doctor{Config: cfg, Now: time.Now, Gateway: t.Gateway}
	if d.Gateway == "" && t.Server == "" {
		own := ownTransport(nil)
		defer own.CloseIdleConnections()
		d.Gateway, d.ToGateway = trafficURL(cfg), own
	}
	admin := *t
	admin.Gateway = "" // both are looked at
	if c, isAdmin, err := s.Client(cmd, &admin); err == nil && isAdmin {
		d.Admin, d.ToAdmin = c, c.Transport()
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

// writeBundle writes an archive atomically, readable by its owner only.
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
