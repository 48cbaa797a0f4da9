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
	type place struct {
		url string
		tls *config.ListenerTLS
	}
	places := []place{{given, new(config.ListenerTLS)}}
	if given == "" {
		t, a := &cfg.Telemetry.TLS, &cfg.Admin.TLS
		places = []place{{shell.URLOf(cfg.Telemetry.Listen, t.On()), t}, {shell.URLOf(cfg.Admin.Listen, a.On()), a}}
	}
	for _, place := range places {
		if c, err = shell.NewAdmin(place.url, cfg.Telemetry.Token.Reveal()); err != nil {
			return nil, nil, shell.InFlag("--metrics", err)
		}
		trust := trust
		trust.OfThisMachine(place.tls)
		if err := c.Trust(trust); err != nil {
			return nil, nil, err
		}
		if first, err = sample(ctx, c); err == nil {
			break
		}
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
