package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/declarative"
	"github.com/spf13/cobra"
)

// wanted holds the flags of apply and diff.
type wanted struct {
	shell.Target
	files  []string
	labels map[string]string
	prune  bool
	dryRun bool
	strict bool
	yes    bool
	expect int64
	reason string
	wait   time.Duration

	report any // printed with the outcome for programs
}

const filesHelp = `Files are YAML or JSON, with one document or several for each object:

  kind: API              or Policy, or Key
  metadata:
    name: orders         the id of an API or a policy, the name of a key
    labels: {team: a}    for --select
  spec: {...}            the definition, policy or session itself

A secret can be kept elsewhere: write {env: NAME} or {file: PATH} in place of a value in
the spec, with PATH relative to the file. Export preserves these references.

Besides its spec, a Key has either hash, or generate: true to generate a key
if none has its name; a new key is shown once.`

func (s *session) applyCommand() *cobra.Command {
	w := new(wanted)
	cmd := &cobra.Command{
		Use:   "apply -f PATH",
		Short: "Apply the APIs, policies and keys in files to a server",
		Long: `Applies files to a server. Everything changes in one transaction, or
nothing does; unchanged objects are not touched. Objects that are in no
file are kept, unless --prune is given.

` + filesHelp + "\n\n" + shell.AdminHelp,
		Example: "  sluice apply -f ./config --wait\n  sluice apply -f ./config --prune --select team=a --dry-run",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.apply(cmd, w) },
	}
	w.describe(cmd)
	f := cmd.Flags()
	f.BoolVar(&w.dryRun, "dry-run", false, "have the server check everything, and change nothing")
	w.changes(cmd)
	return cmd
}

func (s *session) diffCommand() *cobra.Command {
	r := new(replaying)
	w, withReplay := &r.wanted, false
	cmd := &cobra.Command{
		Use:   "diff -f PATH",
		Short: "Show what apply would change",
		Long: `Compares files with the objects of a server: defaults count as if they
were written, and the order of sets is ignored. Exit code 5 means that
they differ.

` + filesHelp + "\n\n" + shell.AdminHelp,
		Example: "  sluice diff -f ./config\n  sluice diff -f ./config --prune -o json\n  sluice diff -f ./config --replay",
		Args:    shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if withReplay && s.Output != "table" {
				return shell.Exit(shell.ExitUsage, "--replay prints text; sluice replay prints data")
			}
			differs := s.diff(cmd, w)
			if exit, ok := errors.AsType[*shell.ExitError](differs); !withReplay || !ok || exit.Code != shell.ExitDifferences {
				return differs
			}
			r.most = "100%"
			if err := s.replay(cmd, r); err != nil {
				return err
			}
			return differs
		},
	}
	w.describe(cmd)
	cmd.Flags().BoolVar(&withReplay, "replay", false, "also run recorded requests against the changes, as sluice replay does")
	return cmd
}

// describe adds the flags that select files.
func (w *wanted) describe(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&w.files, "file", "f", nil, "`PATH` of a file or folder, - for standard input; may be repeated")
	f.BoolVar(&w.prune, "prune", false, "delete APIs and policies that are in no file")
	f.StringToStringVar(&w.labels, "select", nil, "`LABEL=VALUE` that an object must have to be pruned; may be repeated")
	f.BoolVar(&w.strict, "strict", false, "refuse members that have no effect, which are otherwise kept with a warning")
	w.AdminFlags(cmd)
}

// changes adds the flags of commands that change a server.
func (w *wanted) changes(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&w.yes, "yes", false, "do not ask before something is deleted")
	f.Int64Var(&w.expect, "expect-revision", -1, "`NUMBER` of the revision that must be current")
	f.StringVar(&w.reason, "reason", "", "`TEXT` for the history: why")
	f.DurationVar(&w.wait, "wait", 0, "wait until every gateway serves it, for at most `TIME` (a minute when none is given)")
	f.Lookup("wait").NoOptDefVal = "1m"
}

// readWanted reads the files.
func (s *session) readWanted(w *wanted) (*declarative.Set, error) {
	if len(w.files) == 0 {
		return nil, shell.Exit(shell.ExitUsage, "say what is wanted: -f PATH")
	}
	if len(w.labels) > 0 && !w.prune {
		return nil, shell.Exit(shell.ExitUsage, "--select says what --prune may delete; add --prune, or leave it out")
	}
	set, err := declarative.Read(w.files, s.Stdin, s.Lookup)
	if _, wrong := errors.AsType[declarative.Wrong](err); wrong {
		return nil, shell.Exit(shell.ExitRefused, err.Error())
	}
	if err != nil {
		return nil, shell.Exit(shell.ExitUsage, err.Error())
	}
	if err := set.Check(); err != nil {
		return nil, shell.Exit(shell.ExitUsage, err.Error())
	}
	if unknown := set.Unknown(); w.strict && len(unknown) > 0 {
		return nil, shell.Exit(shell.ExitRefused, strings.Join(unknown, "\n"))
	}
	return set, nil
}

func (s *session) diff(cmd *cobra.Command, w *wanted) error {
	set, err := s.readWanted(w)
	if err != nil {
		return err
	}
	c, err := s.Admin(cmd, &w.Target)
	if err != nil {
		return err
	}
	how := declarative.Settings{Options: declarative.Options{Prune: w.prune, Select: w.labels}}
	plan, revision, err := how.Plan(cmd.Context(), c, set)
	if err != nil {
		return shell.AsExit(err)
	}
	out := &declarative.Outcome{Revision: revision, DryRun: true, Changes: append([]declarative.Change{}, plan.Changes...), Warnings: set.Unknown()}
	if err := s.printOutcome(out, plan.Text); err != nil {
		return err
	}
	if len(plan.Changes) > 0 {
		return shell.Exit(shell.ExitDifferences, "")
	}
	if s.Output != "table" {
		return nil
	}
	return s.Remark("no difference")
}

func (s *session) apply(cmd *cobra.Command, w *wanted) error {
	set, err := s.readWanted(w)
	if err != nil {
		return err
	}
	return s.give(cmd, w, set)
}

// give applies the objects to a server.
func (s *session) give(cmd *cobra.Command, w *wanted, set *declarative.Set) error {
	c, err := s.Admin(cmd, &w.Target)
	if err != nil {
		return err
	}
	how := declarative.Settings{
		Options: declarative.Options{Prune: w.prune, Select: w.labels},
		DryRun:  w.dryRun, Expect: w.expect, Reason: w.reason, Strict: w.strict, Stale: isStale, Report: w.report,
		Agree: func(plan *declarative.Plan) error { return s.agree(plan, w) },
	}
	end := func() {}
	if !s.Quiet {
		end = shell.ShowElapsed(s.Stderr, shell.IsTerminal(s.Stderr), "applying "+shell.Plural(len(set.Objects), "object"))
	}
	out, err := how.Apply(cmd.Context(), c, set)
	end()
	if out == nil {
		return shell.AsExit(err)
	}
	if shown := s.printOutcome(out, func() string { return newKeys(out.Keys) }); shown != nil || err != nil {
		return errors.Join(shell.AsExit(err), shown)
	}
	if err := s.conclude(out, w); err != nil || w.wait == 0 || w.dryRun {
		return err
	}
	gateways, err := declarative.Wait(cmd.Context(), c, out.Revision, w.wait)
	if err != nil {
		return shell.AsExit(err)
	}
	if s.Output != "table" {
		return nil
	}
	return s.Remark("%s %s it", shell.Plural(gateways, "gateway"), map[bool]string{true: "serves", false: "serve"}[gateways == 1])
}

// agree prints the plan, and asks before anything is deleted.
func (s *session) agree(plan *declarative.Plan, w *wanted) error {
	if s.Output == "table" && !s.Quiet {
		if err := s.Write(plan.Text()); err != nil {
			return err
		}
	}
	if n := plan.Count(declarative.Delete); n > 0 && !w.dryRun {
		return s.Confirm(w.yes, "delete "+shell.Plural(n, "object"))
	}
	return nil
}

// conclude summarises the outcome in one line.
func (s *session) conclude(out *declarative.Outcome, w *wanted) error {
	switch {
	case s.Output != "table":
		return nil
	case len(out.Changes) == 0:
		return s.Remark("nothing to change at revision %d", out.Revision)
	case w.dryRun:
		return s.Remark("%s would be made; nothing was changed", shell.Plural(len(out.Changes), "change"))
	}
	return s.Remark("%s made, revision %d", shell.Plural(len(out.Changes), "change"), out.Revision)
}

// isStale reports whether a server refused because of a concurrent change.
func isStale(err error) bool {
	refused, ok := errors.AsType[*shell.RefusedError](err)
	return ok && refused.Status == 409 && strings.Contains(refused.Message, "in the meantime")
}

// newKeys prints new keys, which are shown only once.
func newKeys(made []declarative.NewKey) string {
	var b strings.Builder
	for _, k := range made {
		fmt.Fprintf(&b, "key %s  %s   (shown once)\n", k.Name, k.Key)
	}
	return b.String()
}

// printOutcome prints the outcome: data with -o, otherwise text, with warnings on standard
// error.
func (s *session) printOutcome(out *declarative.Outcome, text func() string) error {
	if s.Output == "table" {
		s.warn(out.Warnings)
	}
	answer, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return s.Show(answer, func() error { return s.Write(text()) })
}

// warn prints warnings on standard error, unless --quiet is set.
func (s *session) warn(warnings []string) {
	for _, one := range warnings {
		if !s.Quiet {
			_, _ = fmt.Fprintf(s.Stderr, "sluice: warning: %s\n", one)
		}
	}
}
