package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/observe/rollup"
	"github.com/sluicegate/sluice/gateway/tally"
	counted "github.com/sluicegate/sluice/internal/definition/usage"
)

// tallies are the counts of calls of a gateway that has an admin.
type tallies struct {
	counts *rollup.Counts
	sender *tally.Sender
}

// newTallies returns nil for a gateway without an admin: nobody wants its counts.
func newTallies(p *nodeParts) *tallies {
	if p.adminURL == "" {
		return nil
	}
	to := p.usageTo
	if to == nil {
		to = tally.NewRemote(p.adminURL, p.token)
	}
	t := &tallies{counts: rollup.New()}
	t.sender = tally.New(tally.Options{Counts: t.counts, To: to, Gateway: gatewayName(p), Every: p.cfg.Usage.Flush, Log: p.log})
	return t
}

// gatewayName is what the admin knows the gateway by.
func gatewayName(p *nodeParts) string {
	host, err := os.Hostname()
	if err != nil {
		host = "gateway"
	}
	return host + cmp.Or(p.cfg.Gateway.Listen, p.cfg.Gateway.TLS.Listen)
}

// watched returns what metrics show of them, nil for no tallies.
func (t *tallies) watched() func() observe.Handed {
	if t == nil {
		return nil
	}
	return func() observe.Handed {
		now := t.sender.Stats()
		return observe.Handed{
			Calls: now.Handed, Dropped: now.Refused + t.counts.Lost(), Others: t.counts.Others(), Waiting: now.Waiting, Lag: now.Lag,
		}
	}
}

// finishWithin bounds how long a stop waits for the last counts to be handed over.
const finishWithin = 5 * time.Second

// finish hands over what is left, once there is no more traffic.
func (t *tallies) finish() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishWithin)
	defer cancel()
	t.sender.Finish(ctx)
}

// beside is the admin of this process, which is made after the gateway.
type beside struct{ server atomic.Pointer[admin.Server] }

var errNoAdminYet = errors.New("the admin has not started yet")

// Receive implements tally.Receiver without a detour over HTTP.
func (b *beside) Receive(ctx context.Context, batch *counted.Batch) error {
	server := b.server.Load()
	if server == nil {
		return errNoAdminYet
	}
	err := server.ReceiveUsage(ctx, batch)
	if fault, ok := errors.AsType[*rest.Fault](err); ok {
		return &tally.RefusedError{Cause: fault}
	}
	return err
}
