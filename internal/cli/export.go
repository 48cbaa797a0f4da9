package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/declarative"
	"github.com/spf13/cobra"
)

// exported holds the flags of export.
type exported struct {
	shell.Target
	format string
	split  string
	keys   bool
	values bool

	named []string // names of variables for secrets
}

func (s *session) exportCommand() *cobra.Command {
	e := new(exported)
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the objects of a server as files for apply, or for gateways on files",
		Long: `Writes the APIs and policies of a server in a stable order, as documents for
apply, or with --format classic as definitions and policies that a gateway
reads from a folder (apps/*.json and policies.json below --split).

Keys are written as their hashes, and only with --include-keys; passwords are
never written. A secret that came from {env: NAME} or {file: PATH} is written as
that again, every other one as {env: NAME} with a name that is printed; apply
requires these variables. With --include-secrets they are written in clear, as
always for gateways on files, which read no references.

` + shell.AdminHelp,
		Example: "  sluice export > config.yaml\n  sluice export --split ./config --include-keys\n  sluice export --format classic --split ./gateway",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.export(cmd, e) },
	}
	f := cmd.Flags()
	f.StringVar(&e.format, "format", "native", "`FORM`: native or classic")
	f.StringVar(&e.split, "split", "", "`FOLDER` to write one file for each object to")
	f.BoolVar(&e.values, "include-secrets", false, "write secrets as they are")
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
	set, revision, err := declarative.Fetch(cmd.Context(), c, e.keys)
	if err != nil {
		return shell.AsExit(err)
	}
	if e.split == "" {
		if err := s.writeDocuments(set, e); err != nil {
			return err
		}
		s.printVariables(e)
		return nil
	}
	if e.format == "classic" {
		err = set.WriteClassic(e.split)
	} else {
		err = s.splitDocuments(set, e)
	}
	if err != nil {
		return err
	}
	s.printVariables(e)
	return s.Remark("%s of revision %d in %s", shell.Plural(len(set.Objects), "object"), revision, e.split)
}

// writeDocuments prints all objects, one document after the other.
func (s *session) writeDocuments(set *declarative.Set, e *exported) error {
	var b strings.Builder
	for i, o := range set.Objects {
		text, err := s.document(o, e)
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

// document is an object in file form: YAML, or JSON if requested.
func (s *session) document(o *declarative.Object, e *exported) (string, error) {
	data, named, err := o.Document(e.values)
	if err != nil {
		return "", err
	}
	e.named = append(e.named, named...)
	if s.Output != "json" {
		return shell.YAML(data)
	}
	var b bytes.Buffer
	err = json.Indent(&b, data, "", "  ")
	return b.String() + "\n", err
}

// printVariables prints the names of variables for secrets in the output.
func (s *session) printVariables(e *exported) {
	if len(e.named) > 0 && !s.Quiet {
		_, _ = fmt.Fprintf(s.Stderr, "sluice: secrets are left out; set these variables where this is applied: %s\n", strings.Join(e.named, ", "))
	}
}

// modeOf returns the file mode: files with secrets are readable by their owner only.
func modeOf(e *exported) os.FileMode {
	if e.values {
		return 0o600
	}
	return 0o644
}

func (s *session) splitDocuments(set *declarative.Set, e *exported) error {
	ending := ".yaml"
	if s.Output == "json" {
		ending = ".json"
	}
	var all error
	for _, o := range set.Objects {
		text, err := s.document(o, e)
		if err != nil {
			return err
		}
		name := filepath.Join(e.split, o.FileName()+ending)
		if err = os.MkdirAll(filepath.Dir(name), 0o755); err == nil {
			err = os.WriteFile(name, []byte(text), modeOf(e))
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("writing %s: %w", name, shell.BareCause(err)))
		}
	}
	return all
}
