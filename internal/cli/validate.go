package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/cli/checks"
)

func (s *session) validateCommand() *cobra.Command {
	v := checks.New()
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
			return &exitError{ExitUsage, err.Error()}
		}
	}
	if err := s.printFindings(v); err != nil {
		return err
	}
	refused, unknown := v.Count()
	switch summary := fmt.Sprintf("%s in %s", plural(refused+unknown, "problem"), plural(v.Files, "file")); {
	case refused > 0:
		return &exitError{ExitRefused, summary}
	case unknown > 0:
		return &exitError{ExitDifferences, summary}
	case s.output == "table":
		return s.remark("%s, no problem", plural(v.Files, "file"))
	}
	return nil
}

// printFindings writes one line per problem, or data with -o.
func (s *session) printFindings(v *checks.Checks) error {
	if s.output != "table" {
		data := rows{columns: []string{"file", "path", "message", "unknown"}}
		for _, f := range v.Findings {
			data.cells = append(data.cells, []any{f.File, f.Path, f.Message, f.Unknown})
		}
		return s.print(data)
	}
	var b strings.Builder
	for _, f := range v.Findings {
		b.WriteString(f.File + ": ")
		if f.Path != "" {
			b.WriteString(f.Path + ": ")
		}
		b.WriteString(f.Message + "\n")
	}
	return s.write(b.String())
}

// plural writes 1 file, 2 files.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// bareCause drops the path from an error: it stands before it already.
func bareCause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
