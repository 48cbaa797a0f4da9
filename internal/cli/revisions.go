package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

// revisionView is a revision as the admin returns it.
type revisionView struct {
	Revision int64     `json:"revision"`
	Author   string    `json:"author"`
	Source   string    `json:"source"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
	Summary  []struct {
		Kind   string `json:"kind"`
		ID     string `json:"id"`
		Name   string `json:"name"`
		Action string `json:"action"`
	} `json:"summary"`
}

// changes summarises a revision in one line.
func (r *revisionView) changes() string {
	const shown = 3
	var parts []string
	for i, one := range r.Summary {
		if i == shown {
			parts = append(parts, fmt.Sprintf("and %d more", len(r.Summary)-shown))
			break
		}
		parts = append(parts, one.Action+" "+one.Kind+" "+one.ID)
	}
	return strings.Join(parts, ", ")
}

// revisionCommands are the commands on revisions of the configuration.
func (s *session) revisionCommands() []*cobra.Command {
	t := new(shell.Target)
	page, most, against, reason, yes := 1, 20, int64(0), "", false
	history := &cobra.Command{
		Use:     "history",
		Short:   "List the revisions of the configuration with authors and reasons, newest first",
		Long:    "Lists the revisions of the configuration, newest first.\n\n" + shell.AdminHelp,
		Example: "  sluice config history\n  sluice config history --page 2 -o json",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.history(cmd, t, page, most) },
	}
	history.Flags().IntVar(&page, "page", 1, "`NUMBER` of the page")
	history.Flags().IntVar(&most, "page-size", 20, "`NUMBER` of revisions on a page")
	show := &cobra.Command{
		Use:   "show N",
		Short: "Print a revision with the whole configuration",
		Long:  "Prints a revision with all its APIs and policies.\n\n" + shell.AdminHelp,
		Args:  oneRevision,
		RunE:  func(cmd *cobra.Command, args []string) error { return s.showRevision(cmd, t, args[0]) },
	}
	diff := &cobra.Command{
		Use:   "diff N",
		Short: "Compare a revision with the one before, or another",
		Long: `Compares a revision with the one before it, or with --against. Exit code 5 means
that they differ.

` + shell.AdminHelp,
		Example: "  sluice config diff 42\n  sluice config diff 42 --against 37",
		Args:    oneRevision,
		RunE:    func(cmd *cobra.Command, args []string) error { return s.diffRevision(cmd, t, args[0], against) },
	}
	diff.Flags().Int64Var(&against, "against", 0, "`NUMBER` of the revision to compare with (default: the one before)")
	rollback := &cobra.Command{
		Use:   "rollback N",
		Short: "Restore the configuration of a revision",
		Long: `Makes a new revision that has the APIs and policies of an older one. Keys stay as
they are. The diff is shown before.

` + shell.AdminHelp,
		Example: `  sluice config rollback 41 --reason "the new limits were too low"`,
		Args:    oneRevision,
		RunE:    func(cmd *cobra.Command, args []string) error { return s.rollback(cmd, t, args[0], reason, yes) },
	}
	rollback.Flags().StringVar(&reason, "reason", "", "`TEXT` for the history: why")
	rollback.Flags().BoolVar(&yes, "yes", false, "do not ask")
	t.AdminFlags(history, show, diff, rollback)
	return []*cobra.Command{history, show, diff, rollback}
}

// oneRevision requires the number of a revision.
func oneRevision(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the number of a revision, as config history lists them")
	}
	if n, err := strconv.ParseInt(args[0], 10, 64); err != nil || n < 1 {
		return fmt.Errorf("%q is no number of a revision; they count from 1", args[0])
	}
	return nil
}

func (s *session) history(cmd *cobra.Command, t *shell.Target, page, most int) error {
	var view struct {
		Revisions []revisionView `json:"revisions"`
		Pages     int64          `json:"pages"`
	}
	answer, err := s.Ask(cmd, t, shell.Request{Method: "GET", Path: fmt.Sprintf("/api/config/revisions?p=%d&page_size=%d", page, most)}, &view)
	if err != nil {
		return err
	}
	return s.Show(answer, func() error {
		data := shell.Rows{Columns: []string{"revision", "at", "author", "source", "changes", "reason"}}
		for i := range view.Revisions {
			r := &view.Revisions[i]
			data.Cells = append(data.Cells, []any{r.Revision, r.At.Local().Format(time.DateTime), r.Author, r.Source, r.changes(), r.Reason})
		}
		if err := s.Print(data); err != nil || view.Pages <= int64(page) {
			return err
		}
		return s.Remark("page %d of %d", page, view.Pages)
	})
}

func (s *session) showRevision(cmd *cobra.Command, t *shell.Target, n string) error {
	answer, err := s.Ask(cmd, t, shell.Request{Method: "GET", Path: "/api/config/revisions/" + n}, nil)
	if err != nil {
		return err
	}
	if s.Output == "table" { // a configuration is no table
		text, err := shell.YAML(answer)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return s.Write(text)
	}
	return s.Show(answer, nil)
}

// revisionDifferences is the admin's comparison of two revisions.
type revisionDifferences struct {
	From    int64 `json:"from"`
	To      int64 `json:"to"`
	Objects []struct {
		Kind    string `json:"kind"`
		ID      string `json:"id"`
		Action  string `json:"action"`
		Changes []struct {
			Path   string          `json:"path"`
			Before json.RawMessage `json:"before"`
			After  json.RawMessage `json:"after"`
		} `json:"changes"`
	} `json:"objects"`
}

// text lists the differences, one line for each member.
func (d *revisionDifferences) text() string {
	var b strings.Builder
	for _, o := range d.Objects {
		fmt.Fprintf(&b, "%s %s %s\n", o.Action, o.Kind, o.ID)
		if o.Action != "updated" {
			continue
		}
		for _, c := range o.Changes {
			fmt.Fprintf(&b, "  %s: %s -> %s\n", c.Path, orNothing(c.Before), orNothing(c.After))
		}
	}
	return b.String()
}

func orNothing(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return "nothing"
	}
	return string(raw)
}

func (s *session) diffRevision(cmd *cobra.Command, t *shell.Target, n string, against int64) error {
	path := "/api/config/revisions/" + n + "/diff"
	if against > 0 {
		path += fmt.Sprintf("?against=%d", against)
	}
	var view revisionDifferences
	answer, err := s.Ask(cmd, t, shell.Request{Method: "GET", Path: path}, &view)
	if err != nil {
		return err
	}
	if err := s.Show(answer, func() error { return s.Write(view.text()) }); err != nil {
		return err
	}
	if len(view.Objects) > 0 {
		return shell.Exit(shell.ExitDifferences, "")
	}
	return nil
}

func (s *session) rollback(cmd *cobra.Command, t *shell.Target, n, reason string, yes bool) error {
	var now struct {
		Revision int64 `json:"revision"`
	}
	if _, err := s.Ask(cmd, t, shell.Request{Method: "GET", Path: "/api/config"}, &now); err != nil {
		return err
	}
	var would revisionDifferences
	if _, err := s.Ask(cmd, t, shell.Request{Method: "GET", Path: fmt.Sprintf("/api/config/revisions/%s/diff?against=%d", n, now.Revision)}, &would); err != nil {
		return err
	}
	if len(would.Objects) == 0 {
		return s.Remark("the configuration is what it was at revision %s", n)
	}
	if s.Output == "table" && !s.Quiet {
		if err := s.Write(would.text()); err != nil {
			return err
		}
	}
	if err := s.Confirm(yes, fmt.Sprintf("make these %d changes", len(would.Objects))); err != nil {
		return err
	}
	answer, err := s.Ask(cmd, t, shell.Request{Method: "POST", Path: "/api/config/revisions/" + n + "/rollback", Body: map[string]string{"reason": reason}}, nil)
	if err != nil {
		return err
	}
	return s.Show(answer, func() error { return s.Remark("rolled back to revision %s", n) })
}
