package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/cli/checks"
	"github.com/sluicegate/sluice/internal/cli/shell"
)

func (s *session) validateCommand() *cobra.Command {
	v := checks.New(s.Lookup)
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check API definitions and policies without a server",
		Long: `Checks files of API definitions, folders of them, files of policies (an object
from policy id to policy), and the files that apply takes. Of a GraphQL API the schema is checked too, and by it
the operations that the definition holds. Prints each problem with its file and
JSON path; lines and columns are those of the schema or operation.

Exit code 6 means that something would be refused. With --strict, members that
this release does not know count as well; alone they end with exit code 5.`,
		Example: "  sluice validate ./apps policies.json\n  sluice validate --strict -o json ./apps",
		Args:    somePaths,
		RunE:    func(_ *cobra.Command, args []string) error { return s.validate(v, args) },
	}
	cmd.Flags().BoolVar(&v.Strict, "strict", false, "also report members that this release does not know")
	return cmd
}

func somePaths(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("say which files or folders to check")
	}
	return nil
}

func (s *session) validate(v *checks.Checks, paths []string) error {
	for _, path := range paths {
		if err := v.Path(path); err != nil {
			return shell.Exit(shell.ExitUsage, err.Error())
		}
	}
	if err := s.printFindings(v); err != nil {
		return err
	}
	refused, unknown := v.Count()
	switch summary := fmt.Sprintf("%s in %s", shell.Plural(refused+unknown, "problem"), shell.Plural(v.Files, "file")); {
	case refused > 0:
		return shell.Exit(shell.ExitRefused, summary)
	case unknown > 0:
		return shell.Exit(shell.ExitDifferences, summary)
	case s.Output == "table":
		return s.Remark("%s, no problem", shell.Plural(v.Files, "file"))
	}
	return nil
}

// printFindings writes one line per problem, or data with -o.
func (s *session) printFindings(v *checks.Checks) error {
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
		if f.Path != "" {
			b.WriteString(f.Path + ": ")
		}
		b.WriteString(f.Message + "\n")
	}
	return s.Write(b.String())
}
