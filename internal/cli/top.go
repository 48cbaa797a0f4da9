package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/cli/topview"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/spf13/cobra"
)

// topped holds the flags of top.
type topped struct {
	trust        shell.Trust
	metrics, api string
	every        time.Duration
	once         bool
}

func (s *session) topCommand() *cobra.Command {
	w := new(topped)
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show requests, refusals by reason, and latencies of each API",
		Long: `Shows the traffic of a gateway, from two scrapes of its /metrics: requests a second,
refusals by reason, and the median and 99th percentile of latencies, in total, in
the gateway and in the upstream.

On a terminal the table is refreshed until Ctrl-C; otherwise, and with -o, it
is printed repeatedly, or once with --once.`,
		Example: "  sluice top\n  sluice top --once -o json\n  sluice top --metrics http://gateway:9090 --api orders",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.top(cmd, w) },
	}
	f := cmd.Flags()
	f.StringVar(&w.metrics, "metrics", "", "`URL` of the server that has /metrics (default: that of this machine)")
	f.StringVar(&w.api, "api", "", "`ID` of the only API to show")
	f.DurationVar(&w.every, "every", 2*time.Second, "`TIME` between two looks")
	w.trust.Flags(cmd)
	f.BoolVar(&w.once, "once", false, "look twice, print one table and end")
	return cmd
}

func (s *session) top(cmd *cobra.Command, w *topped) error {
	if w.every < 100*time.Millisecond {
		return shell.Exit(shell.ExitUsage, "--every must be 100ms at least")
	}
	cfg, _, err := s.Load(cmd, config.AnyRole)
	if err != nil {
		return err
	}
	s.Trusted(&w.trust)
	c, before, err := firstSample(cmd.Context(), cfg, w.metrics, w.trust)
	if err != nil {
		return err
	}
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-cmd.Context().Done():
			return nil
		case <-tick.C:
		}
		after, err := sample(cmd.Context(), c)
		if err != nil {
			return err
		}
		if err := s.showTop(topview.Between(before, after, w.api), w.once); err != nil || w.once {
			return err
		}
		before = after
	}
}

// firstSample finds the server with the metrics: without an admin in its process, a
// gateway has its own.
func firstSample(ctx context.Context, cfg *config.Config, given string, trust shell.Trust) (c *shell.Client, first *topview.Sample, err error) {
	if given != "" {
		return sampleAt(ctx, cfg, given, trust)
	}
	t, a := &cfg.Telemetry, &cfg.Admin
	ofGateway, ofAdmin := trust, trust
	ofGateway.OfThisMachine(&t.TLS)
	ofAdmin.OfThisMachine(&a.TLS)
	c, first, err = sampleAt(ctx, cfg, shell.URLOf(t.Listen, t.TLS.On()), ofGateway)
	if err == nil {
		return c, first, nil
	}
	c, first, again := sampleAt(ctx, cfg, shell.URLOf(a.Listen, a.TLS.On()), ofAdmin)
	if again != nil {
		return nil, nil, shell.Exit(shell.ExitUnreachable, fmt.Sprintf("%v; %v", err, again))
	}
	return c, first, nil
}

// sampleAt scrapes the metrics of the gateway at url.
func sampleAt(ctx context.Context, cfg *config.Config, url string, trust shell.Trust) (*shell.Client, *topview.Sample, error) {
	c, err := shell.NewAdmin(url, cfg.Telemetry.Token.Reveal())
	if err != nil {
		return nil, nil, shell.InFlag("--metrics", err)
	}
	if err := c.Trust(trust); err != nil {
		return nil, nil, err
	}
	first, err := sample(ctx, c)
	if err == nil && !first.Gateway {
		err = shell.Exit(shell.ExitUnreachable, url+" has no metrics of a gateway; name one with --metrics, or run this on its machine")
	}
	return c, first, err
}

func sample(ctx context.Context, c *shell.Client) (*topview.Sample, error) {
	text, err := c.Call(ctx, "GET", "/metrics", nil)
	if err != nil {
		return nil, shell.AsExit(err)
	}
	return topview.Parse(text, time.Now())
}

func (s *session) showTop(table *topview.Table, once bool) error {
	answer, err := json.Marshal(table)
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return s.Show(answer, func() error {
		if once || !shell.IsTerminal(s.Stdout) {
			return s.Write(table.Text(0) + "\n")
		}
		const screen = 20 // APIs that fit
		return s.Write("\x1b[H\x1b[2J" + table.Text(screen))
	})
}
