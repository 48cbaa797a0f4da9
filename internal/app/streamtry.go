package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/process"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/streamstate"
)

// streamTrier runs the processors of streams for the admin, in its process: nothing but the
// definition and its secrets is needed for that. It implements admin.StreamTrier.
type streamTrier struct {
	*adminExplainer
	may dialguard.Policy // what this process calls
}

// TryStream implements admin.StreamTrier.
func (t streamTrier) TryStream(ctx context.Context, api *definition.API, of *streamstate.Trial) (*streamstate.Tried, error) {
	with, err := t.revealed(ctx, api)
	if err != nil {
		return nil, err
	}
	list, err := with.InForce().Streams(streams.Options{SkipScripts: true})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i := range list {
		one := &list[i]
		if names[i] = one.Name; one.Name != of.Stream {
			continue
		}
		dialer := net.Dialer{ControlContext: t.may.Control}
		return process.Try(ctx, one, &stream.Site{
			Org: api.OrgID, API: api.ID, Stream: one.Name, MaxMessageBytes: one.MaxMessageBytes, MaxInFlight: one.MaxInFlight,
			Log: slog.New(slog.DiscardHandler), State: new(stream.State), Dial: dialer.DialContext,
		}, of)
	}
	return nil, &definition.Problems{{Path: "stream", Message: fmt.Sprintf("the API has no stream %.64q; it has %s", of.Stream, strings.Join(names, ", "))}}
}
