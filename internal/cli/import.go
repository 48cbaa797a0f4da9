package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/classic"
	"github.com/sluicegate/sluice/internal/cli/client"
	"github.com/sluicegate/sluice/internal/cli/progress"
	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/desired"
)

// imported is what the flags of import say.
type imported struct {
	wanted
	from, secret, below, header string
	renames                     map[string]string
	skip                        bool
}

func (s *session) importCommand() *cobra.Command {
	i := new(imported)
	cmd := &cobra.Command{
		Use:   "import PATH | --from URL",
		Short: "Take over classic definitions, policies and keys",
		Long: `Takes over API definitions, policies and keys of the classic format: from a file,
a folder with all below it, or a running gateway of that format. Keys are taken
over by their hashes.

It reports what was written in another way so that it keeps its meaning, which
members are kept though nothing reads them, and what is refused and why. When
anything is refused nothing is changed, unless --skip-refused is given.

` + shell.AdminHelp,
		Example: "  sluice import ./gateway --dry-run\n  sluice import ./gateway --rename acme=svc\n  sluice import --from http://old:8080 --from-path /acme --from-header X-Acme-Authorization --rename acme=svc",
		Args: func(_ *cobra.Command, args []string) error {
			if (i.from == "") != (len(args) == 1) || len(args) > 1 {
				return errors.New("want one PATH, or --from URL")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return s.importFrom(cmd, i, args) },
	}
	f := cmd.Flags()
	f.StringVar(&i.from, "from", "", "`URL` of a running gateway's control API")
	f.StringVar(&i.secret, "secret", "", "`SECRET` of that control API; rather set SLUICE_IMPORT_SECRET, which nobody else sees")
	f.StringVar(&i.below, "from-path", "/svc", "`PATH` that its control API is below")
	f.StringVar(&i.header, "from-header", "X-Svc-Authorization", "`NAME` of the header that carries its secret")
	f.StringToStringVar(&i.renames, "rename", nil, "`OLD=NEW` prefix of variables ($OLD_context), headers and members (x-OLD-); may be repeated")
	f.BoolVar(&i.skip, "skip-refused", false, "take over the rest when something is refused")
	f.BoolVar(&i.dryRun, "dry-run", false, "only report; no server is asked")
	i.changes(cmd)
	i.AdminFlags(cmd)
	return cmd
}

func (s *session) importFrom(cmd *cobra.Command, i *imported, args []string) error {
	renames := classic.Renames(i.renames)
	if err := renames.Check(); err != nil {
		return shell.Exit(shell.ExitUsage, err.Error())
	}
	found, err := s.found(cmd, i, args)
	if err != nil {
		return err
	}
	report := classic.Convert(found, renames)
	if i.dryRun {
		return s.reported(report)
	}
	c, err := s.Admin(cmd, &i.Target)
	if err != nil {
		return err
	}
	there, _, err := desired.Fetch(cmd.Context(), c, false)
	if err != nil {
		return shell.AsExit(err)
	}
	report.Settle(there)
	if report.Refused() > 0 && !i.skip {
		return s.reported(report)
	}
	set, err := report.Set()
	if err != nil {
		return shell.Exit(shell.ExitRefused, err.Error())
	}
	if s.Output == "table" && !s.Quiet {
		if err := s.Write(report.Text()); err != nil {
			return err
		}
	}
	i.report = report
	return s.give(cmd, &i.wanted, set)
}

// found reads what is to be taken over.
func (s *session) found(cmd *cobra.Command, i *imported, args []string) ([]classic.Source, error) {
	if i.from == "" {
		found, err := classic.Find(args[0])
		if err != nil {
			return nil, shell.Exit(shell.ExitUsage, err.Error())
		}
		return found, nil
	}
	if i.secret == "" {
		i.secret = s.Variable("SLUICE_IMPORT_SECRET")
	}
	if i.secret == "" {
		return nil, shell.Exit(shell.ExitUsage, "no secret for "+i.from+": set SLUICE_IMPORT_SECRET")
	}
	c, err := client.NewControl(i.from, i.header, i.secret)
	if err != nil {
		return nil, shell.InFlag("--from", err)
	}
	bar := progress.New(s.Stderr, shell.IsTerminal(s.Stderr), "keys read", time.Now)
	defer bar.End()
	show := bar.Set
	if s.Quiet {
		show = nil
	}
	found, err := classic.Ask(cmd.Context(), c, i.below, show)
	return found, shell.AsExit(err)
}

// reported prints a report of which nothing comes.
func (s *session) reported(report *classic.Report) error {
	answer, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if err := s.Show(answer, func() error { return s.Write(report.Text()) }); err != nil {
		return err
	}
	if n := report.Refused(); n > 0 {
		return shell.Exit(shell.ExitRefused, shell.Plural(n, "object")+" refused; nothing was changed")
	}
	return nil
}
