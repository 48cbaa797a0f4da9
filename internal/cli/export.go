package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/cli/yamltext"
	"github.com/sluicegate/sluice/internal/desired"
)

// exported is what the flags of export say.
type exported struct {
	shell.Target
	format string
	split  string
	keys   bool
}

func (s *session) exportCommand() *cobra.Command {
	e := new(exported)
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write what a server has as files for apply, or for gateways on files",
		Long: `Writes the APIs and policies of a server in a stable order, as documents that
apply takes, or with --format classic as definitions and policies that a gateway
reads from a folder (apps/*.json and policies.json below --split).

Keys are written as their hashes, and only with --include-keys; passwords are
never written.

` + shell.AdminHelp,
		Example: "  sluice export > config.yaml\n  sluice export --split ./config --include-keys\n  sluice export --format classic --split ./gateway",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.export(cmd, e) },
	}
	f := cmd.Flags()
	f.StringVar(&e.format, "format", "native", "`FORM`: native or classic")
	f.StringVar(&e.split, "split", "", "`FOLDER` to write one file for each object to")
	f.BoolVar(&e.keys, "include-keys", false, "write keys too, as their hashes")
	shell.Must(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"native", "classic"}, cobra.ShellCompDirectiveNoFileComp)))
	shell.Must(cmd.MarkFlagDirname("split"))
	e.AdminFlags(cmd)
	return cmd
}

func (s *session) export(cmd *cobra.Command, e *exported) error {
	switch {
	case e.format != "native" && e.format != "classic":
		return shell.Exit(shell.ExitUsage, fmt.Sprintf("--format %q is unknown; want native or classic", e.format))
	case e.format == "classic" && e.split == "":
		return shell.Exit(shell.ExitUsage, "--format classic writes a folder: name it with --split")
	case e.format == "classic" && e.keys:
		return shell.Exit(shell.ExitUsage, "--include-keys belongs to --format native: gateways do not read keys from files")
	}
	c, err := s.Admin(cmd, &e.Target)
	if err != nil {
		return err
	}
	set, revision, err := desired.Fetch(cmd.Context(), c, e.keys)
	if err != nil {
		return shell.AsExit(err)
	}
	if e.split == "" {
		return s.writeDocuments(set)
	}
	if e.format == "classic" {
		err = set.WriteClassic(e.split)
	} else {
		err = s.splitDocuments(set, e.split)
	}
	if err != nil {
		return err
	}
	return s.Remark("%s of revision %d in %s", shell.Plural(len(set.Objects), "object"), revision, e.split)
}

// writeDocuments prints all objects, one document after the other.
func (s *session) writeDocuments(set *desired.Set) error {
	var b strings.Builder
	for i, o := range set.Objects {
		text, err := s.document(o)
		if err != nil {
			return err
		}
		if i > 0 && s.Output != "json" {
			b.WriteString("---\n")
		}
		b.WriteString(text)
	}
	return s.Write(b.String())
}

// document is an object as a file has it: YAML unless JSON was asked for.
func (s *session) document(o *desired.Object) (string, error) {
	data, err := o.Document()
	if err != nil {
		return "", err
	}
	if s.Output != "json" {
		return yamltext.Of(data)
	}
	var b bytes.Buffer
	err = json.Indent(&b, data, "", "  ")
	return b.String() + "\n", err
}

func (s *session) splitDocuments(set *desired.Set, dir string) error {
	ending := ".yaml"
	if s.Output == "json" {
		ending = ".json"
	}
	var all error
	for _, o := range set.Objects {
		text, err := s.document(o)
		if err != nil {
			return err
		}
		name := filepath.Join(dir, o.FileName()+ending)
		if err = os.MkdirAll(filepath.Dir(name), 0o755); err == nil {
			err = os.WriteFile(name, []byte(text), 0o644)
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("writing %s: %w", name, shell.BareCause(err)))
		}
	}
	return all
}
