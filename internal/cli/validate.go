package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/internal/classicimport"
	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/declarative"
	"github.com/spf13/cobra"
)

func (s *session) validateCommand() *cobra.Command {
	v, t := newFileChecks(s.Lookup), new(shell.Target)
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check API definitions and policies without a server",
		Long: `Checks files and folders of API definitions, files of policies (an object
from policy id to policy), and files for apply. Of a GraphQL API the schema is checked too, and with it
the operations in the definition. Prints each problem with its file and
JSON path; lines and columns are those of the schema or operation.

With --against an admin checks them too: whether the APIs and policies that they refer to
exist, whether listen paths are free, and everything else that it would refuse.

Members that are unknown, or known and of no effect, are listed with the nearest known
name. Exit code 6 means that something would be refused. With --strict, members without
effect count as well; alone they end with exit code 5.`,
		Example: "  sluice validate ./apps policies.json\n  sluice validate --strict -o json ./apps\n  sluice validate --against https://admin.example:8081 ./config",
		Args:    somePaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.validate(v, args); err != nil || t.Server == "" {
				return err
			}
			return s.against(cmd, t, v, args)
		},
	}
	cmd.Flags().StringVar(&t.Server, "against", "", "`URL` of an admin that also checks the files against its objects; nothing is changed")
	cmd.Flags().StringVar(&t.Token, "token", "", "access `KEY` of a user of that admin; SLUICE_TOKEN or a login is safer, because other users can see arguments")
	cmd.Flags().BoolVar(&v.Strict, "strict", false, "count members that have no effect as problems")
	return cmd
}

func somePaths(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("say which files or folders to check")
	}
	return nil
}

func (s *session) validate(v *fileChecks, paths []string) error {
	for _, path := range paths {
		if err := v.Path(path); err != nil {
			return shell.Exit(shell.ExitUsage, err.Error())
		}
	}
	if err := s.printFindings(v); err != nil {
		return err
	}
	refused, unknown := v.Count()
	problems, warnings := refused, ""
	switch {
	case v.Strict:
		problems += unknown
	case unknown > 0:
		warnings = ", " + shell.Plural(unknown, "warning")
	}
	switch summary := fmt.Sprintf("%s in %s%s", shell.Plural(problems, "problem"), shell.Plural(v.Files, "file"), warnings); {
	case refused > 0:
		return shell.Exit(shell.ExitRefused, summary)
	case problems > 0:
		return shell.Exit(shell.ExitDifferences, summary)
	case s.Output == "table":
		return s.Remark("%s, no problem%s", shell.Plural(v.Files, "file"), warnings)
	}
	return nil
}

// printFindings writes one line per problem, or data with -o.
func (s *session) printFindings(v *fileChecks) error {
	if s.Output != "table" {
		data := shell.Rows{Columns: []string{"file", "path", "message", "unknown"}}
		for _, f := range v.Findings {
			data.Cells = append(data.Cells, []any{f.File, f.Path, f.Message, f.Unknown})
		}
		return s.Print(data)
	}
	var b strings.Builder
	for _, f := range v.Findings {
		b.WriteString(f.File + ": ")
		if f.Unknown && !v.Strict {
			b.WriteString("warning: ")
		}
		if f.Path != "" {
			b.WriteString(f.Path + ": ")
		}
		b.WriteString(f.Message + "\n")
	}
	return s.Write(b.String())
}

// against sends the contents of files to an admin as a dry run of apply.
func (s *session) against(cmd *cobra.Command, t *shell.Target, v *fileChecks, paths []string) error {
	set, err := s.setOf(v, paths)
	if err != nil {
		return err
	}
	c, err := s.Admin(cmd, t)
	if err != nil {
		return err
	}
	end := func() {}
	if !s.Quiet {
		end = shell.ShowElapsed(s.Stderr, shell.IsTerminal(s.Stderr), "checking "+shell.Plural(len(set.Objects), "object"))
	}
	how := declarative.Settings{DryRun: true, Expect: -1, Stale: isStale, Agree: func(*declarative.Plan) error { return nil }}
	_, err = how.Apply(cmd.Context(), c, set)
	end()
	if err == nil && s.Output == "table" {
		return s.Remark("%s finds no problem either", c.Base())
	}
	return shell.AsExit(err)
}

// setOf reads files for apply, or definitions and policies.
func (s *session) setOf(v *fileChecks, paths []string) (*declarative.Set, error) {
	if v.Applied == v.Files {
		set, err := declarative.Read(paths, s.Stdin, s.Lookup)
		return set, asRefused(err)
	}
	if v.Applied > 0 {
		return nil, shell.Exit(shell.ExitUsage, "--against: some files are what apply takes and some are definitions or policies alone; check them one after the other")
	}
	var found []classicimport.Source
	for _, path := range paths {
		some, err := classicimport.Find(path)
		if err != nil {
			return nil, shell.Exit(shell.ExitUsage, err.Error())
		}
		found = append(found, some...)
	}
	set, err := classicimport.Convert(found, classicimport.Options{}).Set()
	return set, asRefused(err)
}

func asRefused(err error) error {
	if err == nil {
		return nil
	}
	return shell.Exit(shell.ExitRefused, err.Error())
}
