package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/classicimport"
	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/declarative"
	"github.com/spf13/cobra"
)

// imported holds the flags of import.
type imported struct {
	wanted
	from, fromCA, secret, below, header string
	renames                             map[string]string
	depthBase                           int
	skip                                bool
	drop                                []string
}

func (s *session) importCommand() *cobra.Command {
	i := new(imported)
	cmd := &cobra.Command{
		Use:   "import PATH | --from URL",
		Short: "Import classic definitions, policies and keys",
		Long: `Imports API definitions, policies and keys of the classic format: from a file,
a folder with its subfolders, or a running gateway of that format. Keys are imported
by their hashes.

Policies of the classic format count the depth of GraphQL operations from 0, so
that { a { b } } has depth 2. GraphQL APIs get graphql.depth_base: 0 for that
reason, unless --depth-base says 1 or the definition has one.

It reports which members were converted to keep their meaning, which
are kept without an effect, and which objects are refused and why. If
any is refused, nothing is changed, unless --skip-refused is given.
--drop leaves out what objects are refused for. The report ends with what
has no effect here, by weight: first what decides who may call.

` + shell.AdminHelp,
		Example: "  sluice import ./gateway --dry-run\n  sluice import ./gateway --rename acme=svc\n  sluice import --from http://old:8080 --from-path /acme --from-header X-Acme-Authorization --rename acme=svc",
		Args: func(_ *cobra.Command, args []string) error {
			if (i.from == "") != (len(args) == 1) || len(args) > 1 {
				return errors.New("want one PATH, or --from URL")
			}
			if i.fromCA != "" && i.from == "" {
				return errors.New("--from-ca is for --from URL, which is not given")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return s.importFrom(cmd, i, args) },
	}
	f := cmd.Flags()
	f.StringVar(&i.from, "from", "", "`URL` of a running gateway's control API")
	f.StringVar(&i.fromCA, "from-ca", "", "PEM `FILE` of the authorities that are trusted in calls to it, in place of the system's")
	f.StringVar(&i.secret, "secret", "", "`SECRET` of that control API; SLUICE_IMPORT_SECRET is safer, because other users can see arguments")
	f.StringVar(&i.below, "from-path", "/svc", "`PATH` that its control API is below")
	f.StringVar(&i.header, "from-header", "X-Svc-Authorization", "`NAME` of the header that carries its secret")
	f.StringToStringVar(&i.renames, "rename", nil, "`OLD=NEW` prefix of variables ($OLD_context), headers and members (x-OLD-); may be repeated")
	f.StringArrayVar(&i.drop, "drop", nil, "`MEMBER` to leave out of objects that are refused for it, such as custom_middleware or version_data.versions.*.extended_paths.virtual; may be repeated")
	f.BoolVar(&i.strict, "strict", false, "refuse objects with members that have no effect, which are otherwise kept with a warning")
	f.IntVar(&i.depthBase, "depth-base", 0, "`BASE` that depth counts from in GraphQL APIs that do not say, 0 or 1")
	f.BoolVar(&i.skip, "skip-refused", false, "import the rest if an object is refused")
	f.BoolVar(&i.dryRun, "dry-run", false, "only report; no server is called")
	i.changes(cmd)
	i.AdminFlags(cmd)
	return cmd
}

func (s *session) importFrom(cmd *cobra.Command, i *imported, args []string) error {
	renames := classicimport.Renames(i.renames)
	if err := renames.Check(); err != nil {
		return shell.Exit(shell.ExitUsage, err.Error())
	}
	if i.depthBase != 0 && i.depthBase != 1 {
		return shell.Exit(shell.ExitUsage, "--depth-base must be 0 or 1")
	}
	found, err := s.found(cmd, i, args)
	if err != nil {
		return err
	}
	drops := classicimport.NewDrops(i.drop)
	report := classicimport.Convert(found, classicimport.Options{Renames: renames, Drops: drops, Strict: i.strict})
	if unused := drops.Unused(); len(unused) > 0 {
		return shell.Exit(shell.ExitUsage, "--drop "+strings.Join(unused, ", ")+": no object is refused for it")
	}
	report.SetDepthBase(i.depthBase)
	if i.dryRun {
		return s.reported(report)
	}
	c, err := s.Admin(cmd, &i.Target)
	if err != nil {
		return err
	}
	there, _, err := declarative.Fetch(cmd.Context(), c, false)
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

// found reads the objects to import.
func (s *session) found(cmd *cobra.Command, i *imported, args []string) ([]classicimport.Source, error) {
	if i.from == "" {
		found, err := classicimport.Find(args[0])
		if err != nil {
			return nil, shell.Exit(shell.ExitUsage, err.Error())
		}
		return found, nil
	}
	secretFrom := "--secret"
	if i.secret == "" {
		i.secret, secretFrom = s.Variable("SLUICE_IMPORT_SECRET"), "SLUICE_IMPORT_SECRET"
	}
	if i.secret == "" {
		return nil, shell.Exit(shell.ExitUsage, "no secret for "+i.from+": set SLUICE_IMPORT_SECRET")
	}
	if err := shell.CheckCredential(secretFrom, i.secret); err != nil {
		return nil, err
	}
	c, err := shell.NewControl(i.from, i.header, i.secret, i.fromCA)
	if err != nil {
		return nil, err
	}
	bar := shell.NewBar(s.Stderr, shell.IsTerminal(s.Stderr), "keys read", time.Now)
	defer bar.End()
	show := bar.Set
	if s.Quiet {
		show = nil
	}
	found, err := classicimport.Ask(cmd.Context(), c, i.below, show)
	return found, shell.AsExit(err)
}

// reported prints a report without importing.
func (s *session) reported(report *classicimport.Report) error {
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
