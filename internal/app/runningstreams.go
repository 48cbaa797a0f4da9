package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/sluicegate/sluice/gateway/control"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/process"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/streamstate"
)

// streamRules are what the configuration says about streams: how definitions are read, and
// what may be called.
func streamRules(s config.Streaming) (parse streams.Options, dial stream.Dialer, err error) {
	allowed, err := dialguard.ParseAllowed(s.AllowAddresses)
	if err != nil {
		return streams.Options{}, nil, err
	}
	dialer := &dialguard.Dialer{Allowed: allowed, Setting: "streaming.allow_addresses"}
	return streams.Options{DefaultScheme: streams.Scheme(s.DefaultScheme), PlainHTTP: allowed.Host}, dialer.DialContext, nil
}

// tryStream runs the processors of a stream of a definition with its secrets.
func tryStream(ctx context.Context, s config.Streaming, def *definition.API, t *streamstate.Trial) (*streamstate.Tried, error) {
	parse, dial, err := streamRules(s)
	if err != nil {
		return nil, err
	}
	parse.SkipScripts = true
	list, err := def.Streams(parse)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i := range list {
		of := &list[i]
		if names[i] = of.Name; of.Name != t.Stream {
			continue
		}
		return process.Try(ctx, of, &stream.Site{
			Org: def.OrgID, API: def.ID, Stream: of.Name, MaxMessageBytes: of.MaxMessageBytes, MaxInFlight: of.MaxInFlight,
			Log: slog.New(slog.DiscardHandler), State: new(stream.State), Dial: dial,
		}, t)
	}
	return nil, &definition.Problems{{Path: "stream", Message: fmt.Sprintf("the API has no stream %.64q; it has %s", t.Stream, strings.Join(names, ", "))}}
}

// streamTrier runs the processors of streams for the admin, in its process: that needs the
// definition and its secrets, and no running stream. It implements admin.StreamTrier.
type streamTrier struct {
	*adminExplainer
	cfg config.Streaming
}

// TryStream implements admin.StreamTrier.
func (t streamTrier) TryStream(ctx context.Context, api *definition.API, of *streamstate.Trial) (*streamstate.Tried, error) {
	with, err := t.revealed(ctx, api)
	if err != nil {
		return nil, err
	}
	return tryStream(ctx, t.cfg, with.InForce(), of)
}

// runningStreams are the event streams of the gateway in this process, none before it is
// created. It implements streamstate.Source.
type runningStreams struct{ *node }

// Streams implements streamstate.Source.
func (r runningStreams) Streams(f streamstate.Filter) []streamstate.Stream {
	if r.plane == nil {
		return nil
	}
	return r.plane.streams.Streams(f)
}

// controlledStreams are the event streams of the gateway, for its control API. It implements
// control.Streams.
type controlledStreams struct {
	streamstate.Desk
	*node
}

// controlledStreams returns the streams of the gateway, nil if it runs none.
func (n *node) controlledStreams() control.Streams {
	if !n.cfg.Streaming.Enabled {
		return nil
	}
	return controlledStreams{streamstate.Desk{Source: runningStreams{n}}, n}
}

// Try implements control.Streams.
func (c controlledStreams) Try(ctx context.Context, api string, trial []byte) (any, error) {
	def := c.live.API(api)
	if def == nil || !def.HasStreams() {
		return nil, control.ErrNotFound
	}
	var t streamstate.Trial
	if err := json.Unmarshal(trial, &t); err != nil {
		return nil, &definition.Problems{{Message: "is malformed: " + err.Error()}}
	}
	if problems := t.Problems(); len(problems) > 0 {
		return nil, &problems
	}
	return tryStream(ctx, c.cfg.Streaming, def.InForce(), &t)
}
