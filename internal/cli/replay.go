package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/declarative"
	"github.com/spf13/cobra"
)

// replaying holds the flags of replay.
type replaying struct {
	wanted
	api   string
	since time.Duration
	limit int
	as    string // id of a policy
	most  string // newly refused requests that are accepted
}

func (s *session) replayCommand() *cobra.Command {
	r := new(replaying)
	cmd := &cobra.Command{
		Use:   "replay [FILE...]",
		Short: "Run recorded requests against the changes in files",
		Long: `Evaluates the requests that gateways recorded (gateway.samples_per_second) under
the configuration of a server, and under that configuration with the changes
that apply would make. Prints which of them would be refused or let pass, by
rule and key. Nothing is changed, sent or counted. Rates, quotas and answers
of upstreams are not part of it, and neither are changes of keys.

Exit code 5 means that more requests would be refused than --max-refused.

` + filesHelp + "\n\n" + shell.AdminHelp,
		Example: "  sluice replay ./config\n  sluice replay ./config --since 24h --max-refused 0.1%",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.files = append(r.files, args...)
			return s.replay(cmd, r)
		},
	}
	r.describe(cmd)
	f := cmd.Flags()
	f.StringVar(&r.api, "api", "", "only requests to the API with this `ID`")
	f.DurationVar(&r.since, "since", 0, "only requests of the last `TIME`, such as 24h")
	f.IntVar(&r.limit, "limit", 0, "only the newest `NUMBER` of requests")
	f.StringVar(&r.as, "as-policy", "", "with the changes, callers have the policy with this `ID` alone, which may be a new one")
	f.StringVar(&r.most, "max-refused", "0", "`NUMBER` of requests, or share such as 0.1%, that may be refused in addition")
	return cmd
}

func (s *session) replay(cmd *cobra.Command, r *replaying) error {
	accepts, err := parseMost(r.most)
	if err != nil {
		return err
	}
	set, err := s.readWanted(&r.wanted)
	if err != nil {
		return err
	}
	c, err := s.Admin(cmd, &r.Target)
	if err != nil {
		return err
	}
	how := declarative.Settings{Options: declarative.Options{Prune: r.prune, Select: r.labels}}
	plan, _, err := how.Plan(cmd.Context(), c, set)
	if err != nil {
		return shell.AsExit(err)
	}
	report, answer, err := s.runReplay(cmd.Context(), c, plan, r)
	if err != nil {
		return shell.AsExit(err)
	}
	if err := s.Show(answer, func() error { return s.Write(report.text()) }); err != nil {
		return err
	}
	if refused := report.Result.Refused.Samples; !accepts(refused, report.Result.Samples) {
		return shell.Exit(shell.ExitDifferences, fmt.Sprintf("%s would be refused in addition; --max-refused is %s", shell.Plural(refused, "request"), r.most))
	}
	return nil
}

// parseMost parses --max-refused.
func parseMost(text string) (accepts func(refused, of int) bool, err error) {
	share, isShare := strings.CutSuffix(text, "%")
	if isShare {
		most, err := strconv.ParseFloat(share, 64)
		if err == nil && most >= 0 && most <= 100 {
			return func(refused, of int) bool { return float64(refused)*100 <= most*float64(of) }, nil
		}
	} else if most, err := strconv.Atoi(text); err == nil && most >= 0 {
		return func(refused, _ int) bool { return refused <= most }, nil
	}
	return nil, shell.Exit(shell.ExitUsage, fmt.Sprintf("--max-refused must be a number such as 10, or a share such as 0.1%%, not %q", text))
}

// replayReport is the answer of a run.
type replayReport struct {
	ID, State, Fault string
	Done, Total      int
	Result           struct {
		Samples  int
		From, To time.Time
		Summary  string
		Refused  replayTurned `json:"newly_refused"`
		Allowed  replayTurned `json:"newly_allowed"`
		Since    int          `json:"refused_since"`
		Skipped  []struct {
			Why     string
			Samples int
		} `json:"not_compared"`
		Unknown []string `json:"not_part"`
	}
}

type replayTurned struct {
	Samples int
	Rules   []struct {
		Reason, Rule, Value, From string
		Samples                   int
		Examples                  []struct{ ID, Method, URL, Operation, Seen string }
	}
	Keys []struct {
		Hash    string `json:"key_hash"`
		Alias   string
		Samples int
	}
}

// askEvery is how often the state of a run is asked for.
const askEvery = 200 * time.Millisecond

// runReplay starts a run and waits for its end.
func (s *session) runReplay(ctx context.Context, c *shell.Client, plan *declarative.Plan, r *replaying) (report *replayReport, answer []byte, err error) {
	query := url.Values{}
	if r.api != "" {
		query.Set("api", r.api)
	}
	if r.since > 0 {
		query.Set("since", time.Now().Add(-r.since).UTC().Format(time.RFC3339))
	}
	if r.limit != 0 {
		query.Set("limit", strconv.Itoa(r.limit))
	}
	if r.as != "" {
		query.Set("as_policy", r.as)
	}
	batch := plan.Batch()
	batch.Keys = nil // the run takes keys as they are
	answer, err = c.Call(ctx, "POST", "/api/config/replay?"+query.Encode(), batch)
	end := func() {}
	defer func() { end() }()
	for first := true; err == nil; first = false {
		report = new(replayReport)
		if err := json.Unmarshal(answer, report); err != nil {
			return nil, nil, fmt.Errorf("reading the answer: %w", err)
		}
		switch report.State {
		case "done":
			return report, answer, nil
		case "failed":
			return nil, nil, fmt.Errorf("the run failed: %s", report.Fault)
		}
		if first && !s.Quiet {
			end = shell.ShowElapsed(s.Stderr, shell.IsTerminal(s.Stderr), "running "+shell.Plural(report.Total, "recorded request"))
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(askEvery):
		}
		answer, err = c.Call(ctx, "GET", "/api/config/replay/"+url.PathEscape(report.ID), nil)
	}
	return nil, nil, err
}

// text returns the report for people.
func (r *replayReport) text() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Result.Summary)
	fmt.Fprintf(&b, "recorded from %s to %s\n", r.Result.From.UTC().Format(time.RFC3339), r.Result.To.UTC().Format(time.RFC3339))
	r.Result.Refused.write(&b, "refused")
	r.Result.Allowed.write(&b, "let pass")
	for _, skipped := range r.Result.Skipped {
		fmt.Fprintf(&b, "not compared: %d, because %s\n", skipped.Samples, skipped.Why)
	}
	if r.Result.Since > 0 {
		fmt.Fprintf(&b, "refused now already: %d that passed when they were recorded\n", r.Result.Since)
	}
	for _, left := range r.Result.Unknown {
		fmt.Fprintf(&b, "not part of it: %s\n", left)
	}
	return b.String()
}

func (t *replayTurned) write(b *strings.Builder, what string) {
	if t.Samples == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s by rule:\n", what)
	for _, rule := range t.Rules {
		name := rule.Reason
		if rule.Rule != "" {
			name += ", " + strings.TrimSpace(rule.Rule+" "+rule.Value)
		}
		if rule.From != "" {
			name += " of " + rule.From
		}
		fmt.Fprintf(b, "  %6d  %s\n", rule.Samples, name)
		for _, e := range rule.Examples[:min(len(rule.Examples), 2)] {
			fmt.Fprintf(b, "          %s\n", strings.Join(strings.Fields(strings.Join([]string{"such as", e.ID, e.Method, e.URL, e.Operation, e.Seen}, " ")), " "))
		}
	}
	fmt.Fprintf(b, "%s by key:\n", what)
	for _, key := range t.Keys {
		name := key.Hash[:min(len(key.Hash), 12)] + "  " + key.Alias
		if key.Hash == "" {
			name = "without a key"
		}
		fmt.Fprintf(b, "  %6d  %s\n", key.Samples, strings.TrimSpace(name))
	}
	b.WriteString("\n")
}
