package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/app"
	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/definition/reference"
	"github.com/sluicegate/sluice/internal/didyoumean"
	"github.com/spf13/cobra"
)

func (s *session) definitionCommand() *cobra.Command {
	markdown := false
	cmd := &cobra.Command{
		Use:   "reference [KIND] [PATH]",
		Short: "Print what each member of API definitions, policies, keys and objects of the portal means",
		Long: `Prints each member with its path, type, unit, default, range, meaning, and an example.
KIND is api, policy, key or portal. PATH is that of one member, with or without [] for the elements
of a list and {} for values by name; the members below it are printed too. Without KIND the
member is looked for in all kinds.

-o json and -o yaml are for programs; "sluice schema" prints JSON Schemas for editors.`,
		Example:           "  sluice definition reference policy\n  sluice definition reference proxy.target_url\n  sluice definition reference api proxy.health_check",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: cobra.FixedCompletions([]string{"api", "policy", "key", "portal"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.printMembers(cmd, args, markdown)
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print Markdown")
	return shell.Group("definition", "Look up the members of API definitions, policies, keys and objects of the portal", cmd)
}

func (s *session) printMembers(cmd *cobra.Command, args []string, markdown bool) error {
	kinds, err := app.Reference()
	if err != nil {
		return err
	}
	path := ""
	if len(args) > 0 {
		at := kindNamed(kinds, args[0])
		switch {
		case at >= 0:
			kinds, args = kinds[at:at+1], args[1:]
		case len(args) > 1:
			return unknownKind(cmd, kinds, args[0])
		}
		if len(args) > 0 {
			path = args[0]
		}
	}
	if path != "" {
		if kinds = found(kinds, path); len(kinds) == 0 {
			return s.unknownMember(cmd, path)
		}
	}
	switch {
	case markdown:
		return s.writeEach(kinds, (*reference.Kind).Markdown)
	case path != "" && s.Output == "table":
		return s.writeEach(kinds, details)
	}
	data := shell.Rows{Columns: []string{"kind", "path", "type", "unit", "default", "range", "since", "example", "meaning"}}
	for _, k := range kinds {
		for _, m := range k.Members {
			data.Cells = append(data.Cells, []any{k.Name, m.Path, m.Type, m.Unit, m.Default, m.Range(), m.Since, string(m.Example), m.Text})
		}
	}
	return s.Print(data)
}

func kindNamed(kinds []reference.Kind, name string) int {
	return slices.IndexFunc(kinds, func(k reference.Kind) bool { return k.Name == name })
}

func unknownKind(cmd *cobra.Command, kinds []reference.Kind, name string) error {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return &shell.UsageError{Cause: fmt.Errorf("%q is no kind of object; want %s", name, strings.Join(names, ", ")), Command: cmd.CommandPath()}
}

// found returns the kinds that have a member with a path, with that and those below it.
func found(kinds []reference.Kind, path string) (with []reference.Kind) {
	for _, k := range kinds {
		if members := k.Find(path); len(members) > 0 {
			k.Members = members
			with = append(with, k)
		}
	}
	return with
}

func (s *session) unknownMember(cmd *cobra.Command, path string) error {
	kinds, err := app.Reference()
	if err != nil {
		return err
	}
	var paths []string
	for _, k := range kinds {
		for _, m := range k.Members {
			paths = append(paths, m.Path)
		}
	}
	message := fmt.Sprintf("there is no member %s", path)
	if near := didyoumean.Nearest(path, paths); near != "" {
		message += "; did you mean " + near + "?"
	} else if ending := withEnding(paths, path); len(ending) > 0 {
		message += "; there is " + strings.Join(ending, ", ")
	}
	return &shell.UsageError{Cause: fmt.Errorf("%s", message), Command: cmd.CommandPath()}
}

// withEnding returns at most five paths that end with a name, each once.
func withEnding(paths []string, name string) []string {
	paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !strings.HasSuffix(path, "."+name) })
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return paths[:min(len(paths), 5)]
}

func (s *session) writeEach(kinds []reference.Kind, text func(*reference.Kind) string) error {
	for i := range kinds {
		between := ""
		if i > 0 {
			between = "\n"
		}
		if err := s.Write(between + text(&kinds[i])); err != nil {
			return err
		}
	}
	return nil
}

// details is the members of a kind in paragraphs.
func details(k *reference.Kind) string {
	var b strings.Builder
	for i, m := range k.Members {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s of %s\n  %s\n  type     %s\n  default  %s\n", m.Path, k.Name, m.Text, m.TypeAndUnit(), m.Default)
		if allowed := m.Range(); allowed != "" {
			fmt.Fprintf(&b, "  range    %s\n", allowed)
		}
		fmt.Fprintf(&b, "  since    %s\n  example  %s\n", m.Since, m.Example)
	}
	return b.String()
}

func (s *session) schemaCommand() *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "schema KIND",
		Short: "Print the JSON Schema of API definitions, policies or keys, for editors",
		Long: `Prints the JSON Schema (draft 2020-12) of one kind of object: api, policy or key. Editors
complete and check files with it. In VS Code, name the file that it is written to in the
setting json.schemas, or in a file itself by the member "$schema".

Every object that "sluice validate" accepts conforms to it. Members that are unknown are
accepted, as they are kept and have no effect; with --strict they are errors.`,
		Example:           "  sluice schema api > sluice-api.schema.json",
		Args:              shell.OneArg("kind: api, policy or key"),
		ValidArgsFunction: cobra.FixedCompletions([]string{"api", "policy", "key"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := reference.Kinds()
			if err != nil {
				return err
			}
			at := kindNamed(kinds, args[0])
			if at < 0 {
				return unknownKind(cmd, kinds, args[0])
			}
			enc := json.NewEncoder(s.Stdout)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			return enc.Encode(kinds[at].Schema(strict))
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "let editors report unknown members")
	return cmd
}
